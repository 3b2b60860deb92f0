"""Where state is kept, and which places are refused."""

from __future__ import annotations

import os
import pathlib
import stat

import pytest

from stopwarden.core.errors import StorePlaceError, StoreUnwritableError
from stopwarden.store import mounts, place
from stopwarden.store.port import RecordLine
from stopwarden.store.sqlite import open_sqlite


def mode(path: str | pathlib.Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.fixture
def home(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "home"


def env(home: pathlib.Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), **more}


@pytest.fixture
def state_dir(home: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(place.prepare(env(home)))


# which directory


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"HOME": "/h"}, "/h/.local/state/stopwarden"),
        ({"HOME": "/h/"}, "/h/.local/state/stopwarden"),
        ({"HOME": "/"}, "/.local/state/stopwarden"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/s"}, "/s/stopwarden"),
        ({"HOME": "/h", "XDG_STATE_HOME": "//s//t/"}, "/s/t/stopwarden"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/s/../t/."}, "/t/stopwarden"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/"}, "/stopwarden"),
        ({"HOME": "/h", "XDG_STATE_HOME": ""}, "/h/.local/state/stopwarden"),
        ({"HOME": "/h", "XDG_STATE_HOME": "relative/state"}, "/h/.local/state/stopwarden"),
        ({"HOME": "/h", "XDG_STATE_HOME": "./s"}, "/h/.local/state/stopwarden"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/with\0nul"}, "/h/.local/state/stopwarden"),
    ],
)
def test_the_state_directory_follows_the_xdg_specification(given: dict[str, str], expected: str) -> None:
    """A relative XDG_STATE_HOME is ignored, as the specification says, never taken from the working directory."""
    assert place.state_dir(given) == expected


@pytest.mark.parametrize("given", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_usable_home_the_password_database_tells_it(given: dict[str, str]) -> None:
    import pwd

    assert place.state_dir(given) == pwd.getpwuid(os.geteuid()).pw_dir.rstrip("/") + "/.local/state/stopwarden"


# made private


@pytest.mark.case("A94")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_the_first_run_makes_everything_private_whatever_the_umask(home: pathlib.Path, umask: int) -> None:
    """Every level that we make, the database and its companions are for their owner alone."""
    before = os.umask(umask)
    try:
        state_dir = place.prepare(env(home))
        store = open_sqlite(state_dir)
        store.append([RecordLine(at=1, kind="line")])
        os.close(place.open_private(f"{state_dir}/spool", os.O_WRONLY | os.O_CREAT | os.O_APPEND))
        made = {path.name: mode(path) for path in pathlib.Path(state_dir).iterdir()}
        store.close()
    finally:
        os.umask(before)
    assert [mode(level) for level in (state_dir, home / ".local/state", home / ".local")] == [0o700] * 3
    assert made == dict.fromkeys(("stopwarden.db", "stopwarden.db-wal", "stopwarden.db-shm", "spool"), 0o600)


@pytest.mark.case("A94")
def test_a_database_appears_whole_or_not_at_all(state_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed just before the new database is put in its place, the next run begins as if it were the first."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            open_sqlite(str(state_dir))
    assert not (state_dir / "stopwarden.db").exists()
    open_sqlite(str(state_dir)).close()
    assert {path.name for path in state_dir.iterdir()} <= {"stopwarden.db", "stopwarden.db-wal", "stopwarden.db-shm"}


def test_levels_that_are_there_already_keep_their_modes(home: pathlib.Path) -> None:
    (home / ".local").mkdir(mode=0o755, parents=True)
    (home / ".local").chmod(0o755)
    place.prepare(env(home))
    assert mode(home / ".local") == 0o755
    assert mode(home / ".local/state") == 0o700


def test_what_others_could_read_is_closed_to_them(state_dir: pathlib.Path) -> None:
    open_sqlite(str(state_dir)).close()
    state_dir.chmod(0o755)
    (state_dir / "stopwarden.db").chmod(0o644)
    open_sqlite(str(state_dir)).close()
    assert (mode(state_dir), mode(state_dir / "stopwarden.db")) == (0o700, 0o600)


def test_a_permission_that_the_owner_took_away_is_not_given_back(state_dir: pathlib.Path) -> None:
    file = state_dir / "file"
    file.touch()
    file.chmod(0o444)
    assert place.check_file(str(file))
    state_dir.chmod(0o555)
    place.check(str(state_dir))
    assert (mode(file), mode(state_dir)) == (0o400, 0o500)


def test_missing_levels_above_xdg_state_home_are_made_too(tmp_path: pathlib.Path, home: pathlib.Path) -> None:
    far = tmp_path / "a" / "b" / "c"
    assert place.prepare(env(home, XDG_STATE_HOME=str(far))) == f"{far}/stopwarden"
    assert [mode(level) for level in (far, far.parent, far.parent.parent)] == [0o700] * 3
    assert not (home / ".local").exists()


def test_checking_makes_nothing(home: pathlib.Path) -> None:
    with pytest.raises(StorePlaceError, match="no such directory"):
        place.check(place.state_dir(env(home)))
    assert not (home / ".local").exists()


# refused


@pytest.mark.case("A102")
@pytest.mark.parametrize("level", [".local", ".local/state", ".local/state/stopwarden"])
@pytest.mark.parametrize("dangling", [False, True], ids=["to a directory", "to nothing"])
def test_a_symbolic_link_in_the_state_path_is_refused(
    home: pathlib.Path, tmp_path: pathlib.Path, level: str, dangling: bool
) -> None:
    """A planted link is not followed, nothing is made behind it, and the message says how to go on."""
    elsewhere = tmp_path / "elsewhere"
    if not dangling:
        elsewhere.mkdir()
    link = home / level
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    with pytest.raises(StorePlaceError, match=r"symbolic link.*Nothing was written.*XDG_STATE_HOME"):
        place.prepare(env(home))
    assert not dangling or not elsewhere.exists()
    assert dangling or list(elsewhere.iterdir()) == []


@pytest.mark.case("A102")
@pytest.mark.parametrize("level", ["state", "state/stopwarden"])
def test_a_symbolic_link_as_or_below_xdg_state_home_is_refused(
    home: pathlib.Path, tmp_path: pathlib.Path, level: str
) -> None:
    """The same where the person has set the directory."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / level).parent.mkdir(exist_ok=True)
    (tmp_path / level).symlink_to(elsewhere)
    with pytest.raises(StorePlaceError, match="symbolic link"):
        place.prepare(env(home, XDG_STATE_HOME=str(tmp_path / "state")))
    assert list(elsewhere.iterdir()) == []


@pytest.mark.case("A102")
@pytest.mark.parametrize("name", ["stopwarden.db", "stopwarden.db-wal", "stopwarden.db-shm", "stopwarden.db-journal"])
@pytest.mark.parametrize("when", ["before the first run", "later"])
def test_a_symbolic_link_as_a_file_of_the_database_is_refused(
    state_dir: pathlib.Path, tmp_path: pathlib.Path, name: str, when: str
) -> None:
    """A link planted as the database or beside it: refused, and what it points to stays as it was."""
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    if when == "later":
        open_sqlite(str(state_dir)).close()
    (state_dir / name).unlink(missing_ok=True)
    (state_dir / name).symlink_to(target)
    with pytest.raises(StorePlaceError, match="symbolic link"):
        open_sqlite(str(state_dir))
    assert target.read_bytes() == b"precious"


def test_a_link_above_what_is_ours_is_the_systems_and_followed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "real" / "user").mkdir(parents=True)
    (tmp_path / "homes").symlink_to(tmp_path / "real")
    state_dir = place.prepare({"HOME": str(tmp_path / "homes" / "user")})
    open_sqlite(state_dir).close()
    assert (tmp_path / "real/user/.local/state/stopwarden/stopwarden.db").exists()


@pytest.mark.case("A102")
@pytest.mark.parametrize("name", ["spool", "faults"])
@pytest.mark.parametrize("planted", ["link", "dangling link", "pipe", "directory"])
def test_only_a_regular_file_of_ours_is_opened(
    state_dir: pathlib.Path, tmp_path: pathlib.Path, name: str, planted: str
) -> None:
    """A link, a pipe that would hang us, or a directory at the place of an append-only file is refused at once."""
    path, target = state_dir / name, tmp_path / "target"
    if planted == "pipe":
        os.mkfifo(path)
    elif planted == "directory":
        path.mkdir()
    else:
        path.symlink_to(target)
        if planted == "link":
            target.write_bytes(b"precious")
    with pytest.raises((StorePlaceError, IsADirectoryError)):
        os.close(place.open_private(str(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    with pytest.raises(StorePlaceError):
        place.check_file(str(path))
    assert not target.exists() or target.read_bytes() == b"precious"


@pytest.mark.parametrize("level", [".local/state", ".local/state/stopwarden"])
def test_a_file_where_a_directory_belongs_is_refused(home: pathlib.Path, level: str) -> None:
    (home / level).parent.mkdir(parents=True)
    (home / level).write_text("")
    with pytest.raises(StorePlaceError, match="no directory"):
        place.prepare(env(home))


@pytest.mark.parametrize("bits", [0o777, 0o770, 0o722, 0o1777])
def test_a_directory_that_others_may_write_in_is_refused_and_not_repaired(state_dir: pathlib.Path, bits: int) -> None:
    state_dir.chmod(bits)
    with pytest.raises(StorePlaceError, match=r"others may write.*chmod 700"):
        place.check(str(state_dir))
    with pytest.raises(StorePlaceError):
        open_sqlite(str(state_dir))
    assert mode(state_dir) == bits & 0o777 or mode(state_dir) == bits


@pytest.mark.parametrize("what", ["directory", "database", "log", "spool"])
def test_what_belongs_to_another_user_is_refused(
    state_dir: pathlib.Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_sqlite(str(state_dir)).close()
    (state_dir / "spool").touch()
    path = {
        "directory": state_dir,
        "database": state_dir / "stopwarden.db",
        "log": state_dir / "stopwarden.db-wal",
        "spool": state_dir / "spool",
    }[what]
    path.touch()
    if os.geteuid() == 0:
        os.chown(path, 4711, -1)
    else:  # then it is we who are somebody else
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(StorePlaceError, match="belongs to another user"):
        place.open_private(str(path), os.O_RDONLY) if what == "spool" else open_sqlite(str(state_dir))


def test_a_path_too_long_for_a_database_is_refused_before_anything_is_made(tmp_path: pathlib.Path) -> None:
    deep = str(tmp_path) + "/d" * 300
    with pytest.raises(StorePlaceError, match="too long"):
        place.prepare({"XDG_STATE_HOME": deep})
    assert not (tmp_path / "d").exists()


def test_a_path_that_is_no_text_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(StorePlaceError, match="UTF-8"):
        place.prepare({"XDG_STATE_HOME": str(tmp_path / "\udcff")})


def test_a_place_that_cannot_be_made_says_so(home: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "mkdir", full)
    with pytest.raises(StoreUnwritableError, match=r"cannot be made: No space left.*Nothing was written"):
        place.prepare(env(home))


# network file systems


MOUNTINFO = b"""\
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:20 / /proc rw - proc proc rw
30 21 0:44 / /home rw,relatime - nfs4 server:/home rw,vers=4.2
31 21 0:45 / /mnt/with\\040blank rw - fuse.sshfs user@host:/ rw
32 21 0:46 /sub /data rw - btrfs /dev/sdb rw
33 30 0:47 / /home/local rw - tmpfs tmpfs rw
34 21 8:17 / /usb rw - fuseblk /dev/sdc1 rw
35 21 0:44 / /home rw,relatime - tmpfs tmpfs rw
short line
"""


@pytest.mark.parametrize(
    ("path", "device", "expected"),
    [
        ("/", (254, 0), "ext4"),
        ("/somewhere/else", (254, 0), "ext4"),
        ("/mnt/with blank/x", (0, 45), "fuse.sshfs"),
        ("/mnt/with blank/x", (0, 99), "fuse.sshfs"),  # a device number that no mount has: by the path
        ("/data/subvolume", (0, 77), "btrfs"),
        ("/home/local/x", (0, 77), "tmpfs"),
        ("/homestead", (0, 77), "ext4"),
        ("/home/x", (0, 44), "tmpfs"),  # mounted over: the last one is what is seen
        ("/usb", (8, 17), "fuseblk"),
    ],
)
def test_the_file_system_is_told_from_the_mounts(path: str, device: tuple[int, int], expected: str) -> None:
    assert mounts.in_mountinfo(MOUNTINFO, os.makedev(*device), path) == expected
    assert mounts.in_mountinfo(b"", os.makedev(*device), path) == ""


MACOS = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//me@server/share on /Volumes/My share (smbfs, nodev, nosuid, mounted by me)
server:/export on /net (nfs)
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/Users/me", "apfs"), ("/Volumes/My share/x", "smbfs"), ("/net/x", "nfs"), ("/netx", "apfs")],
)
def test_the_file_system_is_told_from_what_mount_lists(path: str, expected: str) -> None:
    assert mounts.in_listing(MACOS, path) == expected


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "fuse.sshfs", "fuse.rclone"])
def test_a_network_file_system_is_refused_and_nothing_made_on_it(
    home: pathlib.Path, tmp_path: pathlib.Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home on a file server: SQLite's locks do not hold there, so the person is told to choose a local disk."""
    listed = tmp_path / "mountinfo"
    monkeypatch.setattr(mounts, "MOUNTS", str(listed))
    device = os.stat(home).st_dev
    listed.write_text(f"1 0 {os.major(device)}:{os.minor(device)} / / rw - {kind} server:/ rw\n")
    with pytest.raises(StorePlaceError, match=rf"network file system \({kind}\).*XDG_STATE_HOME.*local disk"):
        place.prepare(env(home))
    assert not (home / ".local").exists()
    listed.write_text("")
    state_dir = place.prepare(env(home))
    listed.write_text(f"1 0 {os.major(device)}:{os.minor(device)} / / rw - {kind} server:/ rw\n")
    with pytest.raises(StorePlaceError, match="network file system"):
        open_sqlite(state_dir)
    assert os.listdir(state_dir) == []


@pytest.mark.parametrize(
    "kind", ["ext4", "btrfs", "xfs", "zfs", "apfs", "overlay", "tmpfs", "fuseblk", "fuse.gocryptfs", ""]
)
def test_a_local_file_system_is_used(kind: str) -> None:
    assert not mounts.is_network(kind)
