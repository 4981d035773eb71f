# What nandu does with a real MTD device: Linux's nandsim, in a guest. Each step prints a line, and the first that fails ends it.
# /host/settings says how often a mount is killed (kills), and whether time is short (short).
kills=3
short=1
[ ! -e /host/settings ] || . /host/settings
device=/dev/mtd0
at=/mnt
work=/run/work
mkdir -p $work

fail() {
  echo "FAILED: $*"
  cat /run/nandu-mtd0.log 2>/dev/null
  exit 1
}

# A step that passed, and one for which the guest lacks something.
step() {
  echo "ok: $*"
}
lacking() {
  echo "not here: $*"
}

# A command that has to end with this code and say this, in one line.
refused() {
  code=$1 text=$2
  shift 2
  said=$("$@" 2>&1 >/dev/null)
  ended=$?
  [ $ended = "$code" ] || fail "$*: ended with $ended, not $code: $said"
  case $said in *"$text"*) ;; *) fail "$*: said '$said', not '$text'" ;; esac
  [ "$(echo "$said" | wc -l)" = 1 ] || fail "$*: more than a line: $said"
}

# Ends the mount and waits until its process has left the device.
leave() {
  umount $at || fail "umount"
  while pidof nandu >/dev/null; do usleep 50000; done
  if [ -e /run/nandu-mtd0.log ]; then fail "the mount complained"; fi
}

modprobe fuse
ln -s /bin/nandu /sbin/mount.nandu
ln -s /bin/nandu /sbin/fsck.nandu
ln -s /bin/nandu /sbin/mkfs.nandu

# 128 MiB with pages of 2 KiB, of which 96 MiB are the first partition; blocks 3 and 100 bad.
modprobe nandsim id_bytes=0x20,0xf1,0x00,0x15 parts=768 badblocks=3,100 || fail "nandsim"
name=$(cat /sys/class/mtd/mtd0/name)

refused 1 'there is no such device' nandu info /dev/mtd9
refused 1 'not formatted' nandu fs ls $device
nandu info $device >/dev/null || fail "info of an empty device"
nandu fs format $device >/dev/null || fail "format"
refused 1 "holds a volume of nandu's" nandu fs format $device
refused 8 'there is no such device' nandu check /dev/mtd9
refused 8 'there is no such device' fsck.nandu /dev/mtd9
refused 32 'there is no such device' mount.nandu /dev/mtd9 $at
refused 1 'no MTD device has this name' nandu info mtd:nobody
refused 16 'see' fsck.nandu --wrong $device
mkfs.nandu -f "mtd:$name" >/dev/null || fail "mkfs.nandu"
fsck.nandu -a $device >/dev/null || fail "fsck.nandu"
[ "$(nandu info --json $device | grep -c '"marked":\[3,100\]')" = 1 ] || fail "bad blocks: $(nandu info --json $device)"
step "formatted, and refused by name"

# By fstab, with the program as mount's own helper.
echo "$device $at nandu noatime,allow_other 0 0" >/etc/fstab
mount $at || fail "mount by fstab"
grep -q "^/dev/mtd0 $at fuse.nandu rw,relatime.*allow_other" /proc/mounts || fail "the list of mounts: $(cat /proc/mounts)"
refused 1 "mounted on $at (nandu)" nandu fs ls $device
refused 8 "mounted on $at (nandu)" nandu check $device
leave
step "mounted by fstab, and busy"

modprobe ubi
ubiformat -q -y /dev/mtd1 || fail "ubiformat"
refused 1 'holds UBI' nandu fs format /dev/mtd1
ubiattach -m 1 >/dev/null || fail "ubiattach"
refused 1 'UBI is attached to it as ubi0' nandu fs format --force /dev/mtd1
refused 8 'UBI is attached to it as ubi0' nandu check /dev/mtd1
refused 32 'UBI is attached to it as ubi0' mount.nandu /dev/mtd1 $at
ubidetach -m 1
modprobe mtdblock
refused 1 'take /dev/mtd0' nandu info /dev/mtdblock0
echo 'guest:x:1000:1000::/:/bin/sh' >>/etc/passwd
refused 1 "permission denied: MTD devices are root's" su guest -c "nandu info $device"
refused 8 "permission denied: MTD devices are root's" su guest -c "nandu check $device"
rmmod mtdblock ubi
step "UBI attached, a block device and a user without rights refused"

# All kinds of flash but NAND that the kernel's modules can play here call themselves RAM.
modprobe mtdram total_size=1024 erase_size=64 || fail "mtdram"
modprobe slram map=slram,0x70000000,+0x100000 || fail "slram"
for folder in /sys/class/mtd/mtd[0-9]; do
  case $(cat "$folder/type") in
    nand) ;;
    ram)
      refused 1 'RAM, and nandu is for NAND flash' nandu info "/dev/${folder##*/}"
      refused 8 'RAM, and nandu is for NAND flash' nandu check "/dev/${folder##*/}"
      refused 32 'RAM, and nandu is for NAND flash' mount.nandu "/dev/${folder##*/}" $at
      ;;
    *) fail "${folder##*/} is $(cat "$folder/type")" ;;
  esac
done
refused=$(grep -lx ram /sys/class/mtd/mtd[0-9]/type | wc -l)
rmmod slram mtdram || fail "rmmod"
[ "$refused" = 2 ] || fail "$refused devices of RAM, and not two"
step "$refused devices of RAM refused: mtdram and slram"
lacking "NOR flash, which no module of this kernel plays: the test 'what_is_no_nand_flash_with_one_bit_a_cell_is_refused_by_name' does"

# A volume for a smaller device, as when a partition grew; and a device that is too small for any.
nandu fs build -r /usr/sbin -o $work/small --chip w25n01gv --blocks 150 >/dev/null || fail "build"
flash_erase -q /dev/mtd1 0 0 && nandwrite -q /dev/mtd1 $work/small >/dev/null 2>&1 || fail "nandwrite"
refused 32 'the volume on the chip differs in block count' mount.nandu /dev/mtd1 $at
refused 1 'the volume on the chip differs in block count' nandu fs ls /dev/mtd1
refused 8 'the volume on the chip differs in block count' nandu check /dev/mtd1
[ "$(nandu info /dev/mtd1 | grep -c 'differs in block count')" = 1 ] || fail "info: $(nandu info /dev/mtd1)"
rm $work/small
step "a volume of another size refused"

# The smaller partition filled until there is no room.
nandu fs format --force /dev/mtd1 >/dev/null || fail "format"
nandu mount /dev/mtd1 $at || fail "mount"
files=0
while dd if=/dev/urandom of=$at/$files bs=65536 count=16 conv=fsync 2>$work/said; do files=$((files + 1)); done
grep -q 'No space left on device' $work/said || fail "full: $(cat $work/said)"
[ $files -ge 20 ] || fail "full after $files MiB"
[ "$(cp /usr/sbin/nanddump $at/more 2>&1)" = "cp: error writing '$at/more': No space left on device" ] ||
  [ "$(cp /usr/sbin/nanddump $at/more 2>&1)" = "cp: write error: No space left on device" ] || fail "a copy to a full device"
rm $at/0 $at/1 $at/$files $at/more && cp /usr/sbin/nanddump $at/ && sync -f $at/nanddump || fail "a write after files were removed"
cmp /usr/sbin/nanddump $at/nanddump || fail "what was written after files were removed"
umount $at
while pidof nandu >/dev/null; do usleep 50000; done
nandu check /dev/mtd1 >/dev/null || fail "check: $(nandu check /dev/mtd1)"
head -c 8000000 /dev/urandom >$work/content
refused 1 'there is no room' nandu fs put /dev/mtd1 /much $work/content
nandu check /dev/mtd1 >/dev/null || fail "check: $(nandu check /dev/mtd1)"
step "full after $files MiB of 32, and written to again"

mount $at || fail "mount"
cp -a /usr/bin /usr/sbin $at || fail "cp"
for folder in bin sbin; do diff -r /usr/$folder $at/$folder || fail "diff of $folder"; done
step "copied and compared: $(du -sm $at/bin | cut -f1) MiB"

if command -v fsx >/dev/null; then
  operations=3000
  [ "$short" = 0 ] || operations=1000
  cat >$work/fsx.toml <<END
nomsyncafterwrite = true
flen = 262144
[opsize]
max = 16384
[weights]
close_open = 2
invalidate = 2
mapread = 10
mapwrite = 10
read = 10
write = 10
truncate = 5
fsync = 0.2
fdatasync = 0.2
posix_fallocate = 2
punch_hole = 5
sendfile = 3
posix_fadvise = 1
copy_file_range = 3
END
  (cd $work && fsx -N $operations -S 1 -f fsx.toml -P $work $at/fsx) >$work/said 2>&1 || fail "fsx: $(tail -20 $work/said)"
  grep -q 'All operations completed' $work/said || fail "fsx: $(tail -20 $work/said)"
  step "fsx: $operations operations, mapped reads and writes among them"
else
  lacking "fsx"
fi

# As an initramfs does that ends in another root.
mkdir -p $at/jail/bin $at/jail/proc && cp /bin/busybox $at/jail/bin/ || fail "cp"
[ "$(chroot $at/jail /bin/busybox sh -c 'echo $((6 * 7)) >/said; /bin/busybox cat /said')" = 42 ] || fail "a program of the mount"
rm -r $at/jail || fail "rm"
step "programs of the mount run with it as their root"

if command -v sqlite3 >/dev/null; then
  sql="CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
    INSERT INTO t SELECT i, randomblob(200) FROM n; UPDATE t SET b = randomblob(300) WHERE a % 3 = 0;"
  sqlite3 $at/base "$sql" || fail "sqlite3"
  [ "$(sqlite3 $at/base 'PRAGMA integrity_check; SELECT count(*) FROM t')" = "ok
2000" ] || fail "sqlite3: integrity"
  step "a base of SQLite is whole"
else
  lacking "sqlite3"
fi
if command -v git >/dev/null; then
  (
    cd $at && git init -q --template= store && cd store && git config user.email a@b && git config user.name a &&
      cp -a /usr/sbin files && git add files && git commit -q -m all && git fsck --strict --no-progress
  ) || fail "git"
  step "a repository of git is whole"
else
  lacking "git"
fi
leave
nandu check $device >/dev/null || fail "check: $(nandu check $device)"
step "left cleanly, and checked"

# Each round syncs files until the mount is killed; what was synced has to be there.
round=0
total=0
while [ $round -lt "$kills" ]; do
  round=$((round + 1))
  mount $at || fail "mount after kill $round"
  rm -rf $at/synced && mkdir $at/synced
  : >$work/synced
  (
    number=0
    while number=$((number + 1)); do
      head -c $((number * 37 % 9000)) /dev/urandom >$work/content
      dd if=$work/content of=$at/synced/$number bs=16384 conv=fsync 2>/dev/null || exit
      echo "$number $(md5sum <$work/content)" >>$work/synced
    done
  ) &
  writer=$!
  usleep $((200000 + $(od -An -N2 -tu2 /dev/urandom) * 20))
  kill -9 "$(pidof nandu)"
  wait $writer
  umount -l $at
  nandu check $device >/dev/null || fail "check after kill $round: $(nandu check $device)"
  mount $at || fail "mount after kill $round"
  while read -r number sum; do
    [ "$(md5sum <$at/synced/"$number")" = "$sum" ] || fail "kill $round: file $number, which was synced"
  done <$work/synced
  total=$((total + $(wc -l <$work/synced)))
  leave
done
[ "$total" -ge "$kills" ] || fail "$total files were synced in $kills rounds, which shows nothing"
step "killed $kills times, all $total synced files there"

# A picture as production writes it.
nandu fs build -r /usr/sbin -o $work/picture --chip w25n01gv --blocks $(($(cat /sys/class/mtd/mtd1/size) / 131072)) >/dev/null || fail "build"
flash_erase -q /dev/mtd1 0 0 && nandwrite -q /dev/mtd1 $work/picture >/dev/null 2>&1 || fail "nandwrite"
nandu mount /dev/mtd1 $at || fail "mount of what was written"
diff -r /usr/sbin $at || fail "diff of what was written"
touch $at/more && sync -f $at/more || fail "change of what was written"
umount $at
while pidof nandu >/dev/null; do usleep 50000; done
nandu check /dev/mtd1 >/dev/null || fail "check: $(nandu check /dev/mtd1)"
step "built, written by nandwrite and mounted"

# Blocks that wear out after two or three erases, and pages that cannot be programmed.
rmmod nandsim
modprobe nandsim id_bytes=0x20,0xf1,0x00,0x15 parts=64 weakblocks=20:2,21:2,30:3,31:2 weakpages=1300:1,1400:2,2000:1 bitflips=1 || fail "nandsim"
nandu fs format $device >/dev/null || fail "format"
mount $at || fail "mount"
# Programs of the library's size, written over and over.
round=0
while [ $round -lt 12 ]; do
  round=$((round + 1))
  head -c 3000000 /dev/urandom >$work/content
  cp $work/content $at/content && sync -f $at/content || fail "write $round"
  cmp $work/content $at/content || fail "round $round"
done
umount $at
while pidof nandu >/dev/null; do usleep 50000; done
bad=$(nandu info --json $device | sed 's/.*"bad_blocks":{"count":\([0-9]*\),.*/\1/')
[ "$bad" -gt 0 ] || fail "no block went bad"
nandu check $device >/dev/null || fail "check: $(nandu check $device)"
mount $at || fail "mount"
cmp $work/content $at/content || fail "after the mount"
leave
step "$bad blocks went bad and nothing was lost"

nanddump -q -o -f $work/dump.oob $device 2>/dev/null || fail "nanddump -o"
nanddump -q --bb=skipbad -f $work/dump $device 2>/dev/null || fail "nanddump"
cp $work/dump.oob $work/dump $work/content /host/ || fail "cp"
step "dumped"
