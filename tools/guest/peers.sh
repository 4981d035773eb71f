# The workloads on UBIFS, JFFS2 and nandu, each on the same simulated chip, with the kernel's own counts of what was done to it.
# /host/settings names the rows: FILE_SYSTEM/WORKLOAD, with blanks between.
at=/mnt
trace=/sys/kernel/tracing
work=/run/work

fail() {
  echo "FAILED: $row: $*"
  exit 1
}

# 512 MiB with pages of 4 KiB and blocks of 512 KiB, one bit a cell; or the first blocks of it.
chip() {
  modprobe nandsim id_bytes=0x20,0xdc,0x00,0x36 ${1:+parts=$1} || fail "nandsim"
  [ "$(cat /sys/class/mtd/mtd0/writesize) $(cat /sys/class/mtd/mtd0/erasesize)" = "4096 524288" ] || fail "another chip"
}

# Headers of UBI in pages of their own: no page is programmed twice.
load_ubifs() { modprobe ubifs; }
unload_ubifs() { rmmod ubifs && rmmod ubi; }
format_ubifs() {
  ubiformat -y -q -O 4096 /dev/mtd0 && ubiattach -p /dev/mtd0 -O 4096 >/dev/null && ubimkvol /dev/ubi0 -N data -m >/dev/null &&
    mount -t ubifs ubi0:data $at && leave_ubifs
}
enter_ubifs() { ubiattach -p /dev/mtd0 -O 4096 >/dev/null && mount -t ubifs ubi0:data $at; }
leave_ubifs() { umount $at && ubidetach -p /dev/mtd0; }

load_jffs2() { modprobe jffs2; }
unload_jffs2() { rmmod jffs2; }
format_jffs2() { flash_erase -q -j /dev/mtd0 0 0; }
enter_jffs2() { mount -t jffs2 mtd0 $at; }
leave_jffs2() { umount $at; }

load_nandu() { modprobe fuse; }
unload_nandu() { rmmod fuse; }
format_nandu() { nandu fs format --force /dev/mtd0 >/dev/null; }
enter_nandu() { nandu mount --noatime /dev/mtd0 $at; }
leave_nandu() {
  umount $at || return
  while pidof nandu >/dev/null; do usleep 20000; done
  [ ! -e /run/nandu-mtd0.log ] || cat /run/nandu-mtd0.log
}

# The same with tags in spare bytes, as for a controller that protects them.
load_tagged() { load_nandu; }
unload_tagged() { unload_nandu; }
format_tagged() { nandu fs format --force --tags /dev/mtd0 >/dev/null; }
enter_tagged() { enter_nandu; }
leave_tagged() { leave_nandu; }

# For `nandu-work run`, which runs programs: this script with two words.
case $1 in
  format | enter | leave) "$1_$2"; exit ;;
esac

. /host/settings
mkdir -p $work
mount -t tracefs trace $trace
# All page reads, programs and erases go through these three functions of the kernel's, whoever asks for them.
row=counters
modprobe nand || fail "nand"
{
  echo 'p:flash/read nand_lp_exec_read_page_op'
  echo 'p:flash/program nand_exec_prog_page_op'
  echo 'p:flash/erase nand_erase_op'
} >$trace/kprobe_events || fail "the counters"
# Counted, and not noted down.
echo 0 >$trace/tracing_on
for counter in read program erase; do
  echo 1 >$trace/events/flash/$counter/enable || fail "the counter of ${counter}s"
done

# Gives back what can be given back and says what is in use.
remember() {
  sync
  # The first time only says of what is kept that it may go.
  [ "$2" != small ] || for round in 1 2 3; do echo 3 >/proc/sys/vm/drop_caches; done
  # What is freed is free some ticks later.
  sleep 2
  for slab in /sys/kernel/slab/*/shrink; do echo 1 >"$slab"; done
  nandu-work memory "$1" || fail "memory"
}

begin() {
  chip $1
  "load_$system" || fail "load"
  nandu-work run format sh /script format "$system" || fail "format"
}

enter() { nandu-work run "$1" sh /script enter "$system" || fail "mount"; }
leave() { nandu-work run unmount sh /script leave "$system" || fail "unmount"; }

# Files, and then mounts: after an unmount, and of the chip as it was when the power went before that.
mounts() {
  enter enter
  nandu-work populate $at "$1" || fail "populate"
  # JFFS2 moves in the background, and writes what waits.
  sleep 10
  nanddump -q -n -o --bb=dumpbad -f $work/chip /dev/mtd0 || fail "nanddump"
  leave
  "unload_$system" || fail "unload"
  remember before small
  "load_$system" || fail "load"
  enter clean
  remember mounted
  nandu-work run settled sleep 10
  nandu-work walk $at || fail "walk"
  remember walked
  leave
  flash_erase -q /dev/mtd0 0 0 && nandwrite -q -n -o -N -k /dev/mtd0 $work/chip >/dev/null || fail "nandwrite"
  rm $work/chip
  enter cut
  nandu-work run settled-cut sleep 10
  nandu-work walk $at >$work/walk || fail "walk after the cut"
  grep -q "ops=$1 " $work/walk || fail "files are lost: $(cat $work/walk)"
}

work() {
  case $1 in
    postmark-512) begin && enter enter && nandu-work postmark $at 4096 ;;
    postmark-256) begin 512 && enter enter && nandu-work postmark $at 4096 ;;
    postmark-128k) begin && enter enter && nandu-work postmark $at 131072 ;;
    updates | creates | file) begin && enter enter && nandu-work "$1" $at ;;
    full) begin 256 && enter enter && nandu-work full $at ;;
    mount-1000 | mount-10000) begin && mounts "${1#mount-}" ;;
    *) fail "no such workload" ;;
  esac || fail "the workload"
}

echo "#kernel $(uname -r)"
for row in $rows; do
  system=${row%/*}
  echo "#row $row"
  work "${row#*/}"
  leave
  "unload_$system" || fail "unload"
  rmmod nandsim || fail "rmmod nandsim"
  echo "#done $row"
done
