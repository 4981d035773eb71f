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
refused 8 'there is no such device' fsck.nandu /dev/mtd9
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
ubidetach -m 1
modprobe mtdram total_size=1024 erase_size=64
refused 1 'RAM, and nandu is for NAND flash' nandu info /dev/mtd2
refused 32 'RAM, and nandu is for NAND flash' mount.nandu /dev/mtd2 $at
modprobe mtdblock
refused 1 'take /dev/mtd0' nandu info /dev/mtdblock0
echo 'guest:x:1000:1000::/:/bin/sh' >>/etc/passwd
refused 1 'permission denied' su guest -c "nandu info $device"
step "UBI, RAM, a block device and a user refused"

mount $at || fail "mount"
cp -a /usr/bin /usr/sbin $at || fail "cp"
for folder in bin sbin; do diff -r /usr/$folder $at/$folder || fail "diff of $folder"; done
step "copied and compared: $(du -sm $at/bin | cut -f1) MiB"

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
rmmod mtdblock mtdram ubi
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
