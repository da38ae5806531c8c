from __future__ import annotations

import asyncio
import threading

import pytest

from voice_agent.engines.cpu_gate import CpuGate
from voice_agent.engines.worker import Worker
from voice_agent.errors import EngineError

WAIT = 10.0


class Blocker:
    """A job that tells when it runs and waits to be let go."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.go = threading.Event()

    def __call__(self, value: int) -> int:
        self.started.set()
        assert self.go.wait(WAIT)
        return value


async def started(blocker: Blocker) -> None:
    assert await asyncio.to_thread(blocker.started.wait, WAIT)


@pytest.fixture
def worker():
    made = Worker("test", limit=2)
    yield made
    made.close()


def test_it_runs_on_its_own_named_daemon_thread(worker):
    def where() -> tuple[str, bool]:
        return threading.current_thread().name, threading.current_thread().daemon

    assert asyncio.run(worker.run(where)) == ("test-0", True)


def test_it_serves_several_loops_one_after_the_other(worker):
    assert [asyncio.run(worker.run(pow, number, 2)) for number in range(3)] == [0, 1, 4]


def test_a_full_queue_is_refused_and_the_rest_still_runs(worker):
    async def body():
        blocker = Blocker()
        running = asyncio.create_task(worker.run(blocker, 0))
        await started(blocker)
        waiting = [asyncio.create_task(worker.run(pow, number, 2)) for number in (2, 3)]
        await asyncio.sleep(0)
        with pytest.raises(EngineError, match="2 calls are waiting") as caught:
            await worker.run(pow, 4, 2)
        blocker.go.set()
        return caught.value, await asyncio.gather(running, *waiting)

    error, results = asyncio.run(body())
    assert (error.engine, error.code) == ("test", "busy")
    assert results == [0, 4, 9]


def test_cancelling_takes_a_waiting_job_out_of_the_queue(worker):
    ran: list[str] = []

    async def body():
        blocker = Blocker()
        running = asyncio.create_task(worker.run(blocker, 7))
        await started(blocker)
        waiting = asyncio.create_task(worker.run(ran.append, "cancelled"))
        await asyncio.sleep(0)
        assert worker.waiting == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert worker.waiting == 0
        blocker.go.set()
        assert await running == 7
        await worker.run(ran.append, "after")

    asyncio.run(body())
    assert ran == ["after"]


def test_the_result_of_a_cancelled_running_job_is_dropped(worker):
    async def body():
        blocker = Blocker()
        running = asyncio.create_task(worker.run(blocker, 1))
        await started(blocker)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        blocker.go.set()
        return await worker.run(pow, 2, 3)

    assert asyncio.run(body()) == 8


def test_a_loop_that_ended_meanwhile_does_not_hurt_the_thread(worker):
    blocker = Blocker()

    async def leave():
        running = asyncio.create_task(worker.run(blocker, 1))
        await started(blocker)
        running.cancel()

    asyncio.run(leave())
    blocker.go.set()
    assert asyncio.run(worker.run(pow, 3, 2)) == 9


def test_errors_come_back_with_their_cause(worker):
    def fail() -> None:
        raise ValueError("no such thing")

    def refuse() -> None:
        raise EngineError("other", "special", "said so")

    with pytest.raises(EngineError, match="test: ValueError: no such thing") as caught:
        asyncio.run(worker.run(fail))
    assert caught.value.code == "failed"
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(EngineError) as caught:
        asyncio.run(worker.run(refuse))
    assert caught.value.code == "special"


def test_close_lets_the_running_job_finish_refuses_the_rest_and_joins():
    worker = Worker("closing", threads=2)

    async def body():
        blockers = [Blocker(), Blocker()]
        running = [asyncio.create_task(worker.run(blocker, number)) for number, blocker in enumerate(blockers)]
        for blocker in blockers:
            await started(blocker)
        waiting = asyncio.create_task(worker.run(pow, 2, 2))
        await asyncio.sleep(0)
        closing = asyncio.create_task(worker.close_async())
        with pytest.raises(EngineError) as caught:
            await waiting
        assert caught.value.code == "closed"
        for blocker in blockers:
            blocker.go.set()
        assert await asyncio.gather(*running) == [0, 1]
        await closing
        with pytest.raises(EngineError) as caught:
            await worker.run(pow, 2, 2)
        assert caught.value.code == "closed"

    asyncio.run(body())
    worker.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("closing-")]


def test_running_and_waiting_jobs_are_urgent_on_the_gate():
    gate = CpuGate()
    worker = Worker("gated", gate=gate)
    assert asyncio.run(worker.run(gate.wait_clear, 0.0)) is False
    assert gate.wait_clear(0.0) is True

    async def body():
        blocker = Blocker()
        running = asyncio.create_task(worker.run(blocker, 1))
        waiting = [asyncio.create_task(worker.run(pow, 2, 2)) for _ in range(2)]
        await asyncio.sleep(0)
        assert gate.wait_clear(0.0) is False, "asked for is urgent, whether a thread has taken it or not"
        waiting[0].cancel()
        await started(blocker)
        closing = asyncio.create_task(worker.close_async())
        with pytest.raises(EngineError, match="closed"):
            await waiting[1]
        assert gate.wait_clear(0.0) is False
        blocker.go.set()
        await asyncio.gather(running, closing)

    asyncio.run(body())
    assert gate.wait_clear(0.0) is True, "run, cancelled or refused: each was counted out once"
