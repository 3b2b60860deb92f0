"""Which file system a path is on, and whether it is a network file system.

SQLite's locks and its shared memory do not hold between machines, so a state directory there is
refused (see `store.place`). Linux tells the type in /proc; elsewhere only `mount` does, a process
that is started once, before the directory is made, and never by a hook. May not live here: what
follows from it.
"""

from __future__ import annotations

import os
import sys

MOUNTS = "/proc/self/mountinfo"
NETWORK = {
    *("nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "smbnetfs", "9p", "afs", "afpfs", "ncpfs"),
    *("webdav", "davfs", "coda", "ceph", "lustre", "beegfs", "glusterfs", "gpfs", "orangefs", "pvfs2"),
}
FUSE = ("sshfs", "rclone", "s3fs", "gcsfuse", "goofys", "glusterfs", "ceph", "davfs", "curlftpfs", "smb", "nfs")


def is_network(kind: str) -> bool:
    """Whether a file system of this type is shared between machines."""
    return kind in NETWORK or (kind.startswith("fuse.") and any(name in kind for name in FUSE))


def file_system(path: str, *, may_start_a_process: bool = False) -> str:
    """The type of the file system that an existing path is on, "" where that cannot be told."""
    if sys.platform == "linux":
        try:
            with open(MOUNTS, "rb") as mounts:
                return in_mountinfo(mounts.read(), os.stat(path).st_dev, path)
        except OSError:
            return ""
    if may_start_a_process:
        with os.popen("/sbin/mount 2>/dev/null") as listing:
            return in_listing(listing.read(), path)
    return ""


def in_mountinfo(mounts: bytes, device: int, path: str) -> str:
    """The type by the device's number, else by the longest mount point above the path; the last mount counts.

    (Btrfs gives each subvolume a device number that no mount has.)
    """
    number = b" %d:%d " % (os.major(device), os.minor(device))
    by_number = number in mounts
    real = os.fsencode(os.path.realpath(path)) + b"/"
    kind, longest = b"", -1
    for line in mounts.splitlines():
        if by_number and number not in line:
            continue
        mount, _, rest = line.partition(b" - ")
        fields = mount.split(b" ")
        if not rest or len(fields) < 6:
            continue
        point = _unescaped(fields[4]).rstrip(b"/") + b"/"
        if by_number or (real.startswith(point) and len(point) >= longest):
            kind, longest = rest.split(b" ")[0], len(point)
    return os.fsdecode(kind)


def in_listing(listing: str, path: str) -> str:
    """The type in what `mount` prints on macOS and the BSDs: `what on /where (type, options)`."""
    kind, longest = "", -1
    real = os.path.realpath(path).rstrip("/") + "/"
    for line in listing.splitlines():
        where, _, options = line.partition(" on ")[2].rpartition(" (")
        point = where.rstrip("/") + "/"
        if options and real.startswith(point) and len(point) >= longest:
            kind, longest = options.rstrip(")").split(",")[0].strip(), len(point)
    return kind


def _unescaped(field: bytes) -> bytes:
    for code in (b"\\040", b"\\011", b"\\012", b"\\134"):
        field = field.replace(code, bytes([int(code[1:], 8)]))
    return field
