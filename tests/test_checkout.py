"""Checkouts: which one a session works in, its copy key, and the session's own list in it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading

import pytest

from stopwarden.core.errors import ListError
from stopwarden.work import checkout
from stopwarden.work.checklist import parse

SESSION = "7e15e06a-eefe-44da-90ad-b64555a1702d"


def git(*words: str, cwd: pathlib.Path) -> str:
    """Real git, without anybody's settings."""
    env = {
        "PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip
    done = subprocess.run(["git", *words], cwd=cwd, env=env, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


@pytest.fixture
def repo(tmp_path: pathlib.Path) -> pathlib.Path:
    """A real repository with one commit."""
    path = tmp_path / "repo"
    path.mkdir()
    git("init", "-q", "-b", "main", cwd=path)
    git("commit", "-q", "--allow-empty", "-m", "begin", cwd=path)
    return path


@pytest.fixture
def worktree(repo: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A worktree of it, inside the repository's own folder, as agents make them."""
    path = repo / ".claude" / "worktrees" / "x"
    git("worktree", "add", "-q", str(path), cwd=repo)
    return path


@pytest.fixture
def state(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "state")


# --- the root ----------------------------------------------------------------------------------


@pytest.mark.case("BR-084")
def test_a_session_that_walked_into_a_folder_is_still_in_its_checkout(repo: pathlib.Path) -> None:
    """Whatever `cd` a command left behind, root, key and own list are those of the checkout."""
    below = repo / "app" / "src"
    below.mkdir(parents=True)
    (repo / "app" / ".stopwarden").mkdir()
    root = checkout.find_root(str(below))
    assert root == str(repo)
    assert checkout.own_list_path(root, SESSION) == f"{repo}/.stopwarden/{SESSION}.md"


@pytest.mark.case("BR-083", "BR-080")
def test_a_worktree_is_a_checkout_of_its_own(
    repo: pathlib.Path, worktree: pathlib.Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told by the directory alone, not by what a host's variable says: another root, another key, another list."""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(repo))
    (worktree / "deep").mkdir()
    root = checkout.find_root(str(worktree / "deep"))
    assert root == str(worktree)
    assert checkout.copy_key(root, state) != checkout.copy_key(str(repo), state)
    assert checkout.own_list_path(root, SESSION) != checkout.own_list_path(str(repo), SESSION)
    assert checkout.common_git_dir(checkout.git_dir(root)) == f"{repo}/.git"
    assert checkout.git_dir(root) == f"{repo}/.git/worktrees/x"


@pytest.mark.case("BR-081")
def test_a_directory_that_is_gone_is_itself_and_not_the_repository_above(
    repo: pathlib.Path, worktree: pathlib.Path, state: str
) -> None:
    """A session in a worktree that was removed must not be taken for one in the main checkout."""
    git("worktree", "remove", str(worktree), cwd=repo)
    assert checkout.find_root(str(worktree)) == str(worktree)
    assert checkout.is_gone(str(worktree))
    assert checkout.copy_key(str(worktree), state) == ""
    with pytest.raises(ListError, match="cannot be made"):
        checkout.make_own_list(str(worktree), SESSION)
    assert not worktree.exists()


def test_a_folder_without_git_is_a_checkout_of_itself(tmp_path: pathlib.Path) -> None:
    """Also if something that is no git directory is called `.git`; a link and its target are one place."""
    plain = tmp_path / "plain"
    (plain / ".git").mkdir(parents=True)
    (plain / "in").mkdir()
    assert checkout.find_root(str(plain / "in")) == str(plain / "in")
    (tmp_path / "link").symlink_to(plain)
    assert checkout.find_root(str(tmp_path / "link")) == str(plain)
    assert checkout.find_root("") == "/"
    assert not checkout.is_gone(str(plain))


def test_a_submodule_is_a_checkout_of_its_own(repo: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Its `.git` file points to where its git directory is, relative to itself."""
    inner = repo / "lib"
    (repo / ".git" / "modules" / "lib").mkdir(parents=True)
    inner.mkdir()
    (inner / ".git").write_text("gitdir: ../.git/modules/lib\n", encoding="utf-8")
    assert checkout.find_root(str(inner)) == str(inner)
    assert checkout.git_dir(str(inner)) == f"{repo}/.git/modules/lib"


# --- the copy key ------------------------------------------------------------------------------


def test_the_copy_key_is_minted_once_private_and_says_nothing(repo: pathlib.Path, state: str) -> None:
    """32 hexadecimal digits in the git directory, mode 0600, the same ever after; only looking makes none."""
    assert checkout.copy_key(str(repo), state, make=False) == ""
    key = checkout.copy_key(str(repo), state)
    assert len(key) == 32
    assert set(key) <= set("0123456789abcdef")
    path = repo / ".git" / "stopwarden-copy-key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [checkout.copy_key(str(repo), state, make=make) for make in (True, False)] == [key, key]
    assert git("status", "--porcelain", "--ignored", cwd=repo) == ""
    assert [one.name for one in (repo / ".git").iterdir() if "stopwarden" in one.name] == ["stopwarden-copy-key"]
    assert not os.path.exists(state)


RACER = """
import sys
sys.path.insert(0, {source!r})
from stopwarden.work import checkout
sys.stdin.readline()
print(checkout.copy_key({root!r}, {state!r}))
"""


@pytest.mark.case("A130")
@pytest.mark.parametrize("before", ["absent", "damaged", "no git"])
def test_racing_first_runs_get_one_key(before: str, repo: pathlib.Path, state: str) -> None:
    """Eight processes at once, on a fresh checkout, on a damaged key, in a folder without git: one key."""
    if before == "damaged":
        (repo / ".git" / "stopwarden-copy-key").write_text("half a k")
    root = repo if before != "no git" else repo.parent
    source = str(pathlib.Path(checkout.__file__).parents[2])
    code = RACER.format(source=source, root=str(root), state=state)
    racers = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    keys = {racer.communicate(timeout=60)[0].strip() for racer in racers}
    assert len(keys) == 1
    assert keys == {checkout.copy_key(str(root), state, make=False)}
    assert len(keys.pop()) == 32


@pytest.mark.case("A131")
def test_of_many_threads_that_make_one_file_one_makes_it(tmp_path: pathlib.Path, state: str) -> None:
    """Sixteen first events of one session at once: one list, made once, whole whenever it is seen."""
    made: list[bool] = []
    gate = threading.Barrier(16)

    def first_event() -> None:
        gate.wait()
        path, new = checkout.make_own_list(str(tmp_path), SESSION, "night")
        assert pathlib.Path(path).read_text(encoding="utf-8").startswith("# night\n")
        made.append(new)

    threads = [threading.Thread(target=first_event) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False] * 15 + [True]


def test_without_a_writable_git_directory_the_state_directory_keeps_the_key(
    repo: pathlib.Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only checkout has a key all the same, and keeps it when its git directory can be written again."""
    link = os.link

    def read_only(source: str, target: str, **more: object) -> None:
        if target.startswith(str(repo)):
            raise OSError(30, "read-only file system", target)
        link(source, target, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", read_only)
        key = checkout.copy_key(str(repo), state)
    assert len(key) == 32
    assert checkout.copy_key(str(repo), state) == key
    (copies,) = (pathlib.Path(state) / "copies").iterdir()
    assert str(repo) not in copies.read_text()
    assert copies.stat().st_mode & 0o777 == 0o600


def test_two_folders_without_git_have_two_keys(tmp_path: pathlib.Path, state: str) -> None:
    """The state directory tells them apart by a digest of their paths, which says nothing."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    keys = [checkout.copy_key(str(tmp_path / name), state) for name in ("a", "b", "a")]
    assert keys[0] == keys[2] != keys[1]
    assert all(one.name != "a" and len(one.name) == 64 for one in (pathlib.Path(state) / "copies").iterdir())


# --- a session's own list ----------------------------------------------------------------------


def test_a_sessions_own_list_is_made_once_with_a_head_that_tells_how_to_write_it(repo: pathlib.Path) -> None:
    """It tells agent and person the boxes, owes nothing yet, and is never made over what is there."""
    path, made = checkout.make_own_list(str(repo), SESSION, "parser\n- [ ] evil")
    assert made
    text = pathlib.Path(path).read_text(encoding="utf-8")
    assert text.startswith("# parser - [ ] evil\n")
    for box in ("- [ ]", "- [/]", "- [x]", "- [-]", "(waits for person: why)"):
        assert box in text
    assert parse(text) == ()
    pathlib.Path(path).write_text(text + "- [ ] work\n", encoding="utf-8")
    assert checkout.make_own_list(str(repo), SESSION, "other") == (path, False)
    assert [entry.title for entry in parse(pathlib.Path(path).read_text(encoding="utf-8"))] == ["work"]


def test_git_sees_nothing_of_it_in_a_clone_and_in_a_worktree(repo: pathlib.Path, worktree: pathlib.Path) -> None:
    """Kept out through `info/exclude` of the common git directory, once, after whatever stands there already."""
    exclude = repo / ".git" / "info" / "exclude"
    exclude.write_bytes(b".claude/\n*.log")
    for root in (worktree, repo):
        for session in (SESSION, "another"):
            checkout.make_own_list(str(root), session)
        assert git("status", "--porcelain", cwd=root) == ""
    assert exclude.read_bytes() == b".claude/\n*.log\n.stopwarden/\n"


def test_where_the_exclude_file_cannot_be_written_the_folder_hides_itself(repo: pathlib.Path) -> None:
    """A git directory in an odd state is no reason to show the list in `git status`."""
    (repo / ".git" / "info" / "exclude").unlink(missing_ok=True)
    (repo / ".git" / "info" / "exclude").mkdir(parents=True)
    checkout.make_own_list(str(repo), SESSION)
    assert (repo / ".stopwarden" / ".gitignore").read_text() == "*\n"


@pytest.mark.case("A102")
@pytest.mark.parametrize("planted", ["folder", "list", "dangling", "directory"])
def test_what_is_planted_in_the_place_of_a_list_is_refused(planted: str, repo: pathlib.Path) -> None:
    """A link never makes us write elsewhere; the error says which path and why."""
    outside = repo.parent / "outside"
    outside.mkdir()
    if planted == "folder":
        (repo / ".stopwarden").symlink_to(outside)
    else:
        (repo / ".stopwarden").mkdir()
        own = repo / ".stopwarden" / f"{SESSION}.md"
        if planted == "directory":
            own.mkdir()
        else:
            own.symlink_to(outside / ("victim" if planted == "dangling" else ""))
    with pytest.raises(ListError, match="own list"):
        checkout.make_own_list(str(repo), SESSION)
    assert list(outside.iterdir()) == []


@pytest.mark.case("A101")
@pytest.mark.parametrize("session", ["../../x", "a/b", ".", "..", "", "x" * 300, "x\0y", "näh", "-" * 3, "a b"])
def test_a_session_id_never_becomes_a_path(session: str, repo: pathlib.Path) -> None:
    """What is no plain name is replaced by its digest; two sessions never share a list."""
    path = checkout.own_list_path(str(repo), session)
    assert os.path.dirname(path) == f"{repo}/.stopwarden"
    assert os.path.basename(path).startswith("session-")
    assert path != checkout.own_list_path(str(repo), session + "x")
    assert checkout.make_own_list(str(repo), session) == (path, True)
