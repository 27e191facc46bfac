"""Judging many files side by side: a cheap look at each, then processes for those that may be scripts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_all_start_methods, get_context
from typing import Protocol

import msgspec

from remediate.script.scan.judge import Judged, Task, judge, read_candidate, unreadable

MAX_PROCESSES = 16
MIN_FILES_FOR_PROCESSES = 12
"""A start costs about as much as some scripts; fewer than this are judged in this process."""
_FILES_AT_ONCE = 4


class Watcher(Protocol):
    """Told how far it is."""

    def __call__(self, done: int, total: int, what: str) -> None:
        """Take the number of files done, of all, and what is done with them."""
        ...


class _Worker(msgspec.Struct):
    task: Task | None = None


_WORKER = _Worker()


def judge_all(
    paths: Sequence[str],
    task: Task,
    jobs: int | None = None,
    watch: Watcher | None = None,
    named: Set[str] = frozenset(),
) -> list[Judged]:
    """What was found in each file that may be a script, in the order of the names. The others leave no trace.

    Args:
        paths: absolute.
        task: what they are held against.
        jobs: processes at most; None takes the processors that this process may use.
        watch: told how far it is.
        named: the paths that the user named themselves.
    """
    judged: list[Judged] = []
    candidates: list[str] = []
    for number, path in enumerate(paths, start=1):
        if watch is not None:
            watch(number, len(paths), "looked at")
        problem = _problem(path, candidates, is_named=path in named)
        if problem:
            judged.append(unreadable(path, task.folder, problem))
    processes = min(jobs or len(os.sched_getaffinity(0)), MAX_PROCESSES, len(candidates) // _FILES_AT_ONCE)
    if processes > 1 and len(candidates) >= MIN_FILES_FOR_PROCESSES:
        results = _side_by_side(candidates, task, processes)
    else:
        results = (judge(path, task) for path in candidates)
    for number, result in enumerate(results, start=1):
        judged.append(result)
        if watch is not None:
            watch(number, len(candidates), "judged")
    return sorted(judged, key=lambda item: (item.name, item.path))


def _problem(path: str, candidates: list[str], *, is_named: bool) -> str:
    """Add a file to the candidates, or say why it can't be one."""
    try:
        os.fsencode(path).decode()
        if read_candidate(path, is_named=is_named) is not None:
            candidates.append(path)
    except UnicodeDecodeError:
        return "its name is not UTF-8"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""


def _side_by_side(paths: Sequence[str], task: Task, processes: int) -> Iterator[Judged]:
    chunks = [paths[at : at + _FILES_AT_ONCE] for at in range(0, len(paths), _FILES_AT_ONCE)]
    lost: list[str] = []
    with _pool(processes, task) as pool:
        try:
            running: dict[Future[list[Judged]], Sequence[str]] = {pool.submit(_judge_chunk, c): c for c in chunks}
            for future in as_completed(running):
                try:
                    yield from future.result()
                except BrokenProcessPool:
                    lost += running[future]
        except BrokenProcessPool:
            lost = list(paths)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    yield from _one_by_one(lost, task)


def _one_by_one(paths: Iterable[str], task: Task) -> Iterator[Judged]:
    """The files that were lost with a process that died; the one that kills its process again is named."""
    for path in paths:
        with _pool(1, task) as pool:
            try:
                yield from pool.submit(_judge_chunk, [path]).result()
            except BrokenProcessPool:
                yield unreadable(path, task.folder, "the process that read it died")


def _pool(processes: int, task: Task) -> ProcessPoolExecutor:
    method = "fork" if "fork" in get_all_start_methods() else None
    return ProcessPoolExecutor(processes, get_context(method), _begin, (task,))


def _begin(task: Task) -> None:
    """Ctrl-C is for the parent, which then asks for no more files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _WORKER.task = task


def _judge_chunk(paths: Sequence[str]) -> list[Judged]:
    task = _WORKER.task
    return [judge(path, task) for path in paths] if task is not None else []
