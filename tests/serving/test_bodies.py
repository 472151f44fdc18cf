"""Bodies that are being read: one budget, and the slowest makes room."""

from __future__ import annotations

import asyncio

import pytest

from webhook.serving.bodies import Bodies, Crowded

LONG = 30.0


async def read(bodies: Bodies, sizes: list[int], go: asyncio.Event) -> str:
    """Take these sizes one by one, then wait for more until told to go on."""
    try:
        async with asyncio.timeout(LONG) as limit:
            with bodies.reading(limit) as reader:
                for size in sizes:
                    reader.take(size)
                    await asyncio.sleep(0)
                await go.wait()
    except Crowded:
        return "gave up"
    return "read"


async def together(bodies: Bodies, *readers: list[int]) -> list[str]:
    go = asyncio.Event()
    tasks = [asyncio.create_task(read(bodies, sizes, go)) for sizes in readers]
    for _ in range(10):
        await asyncio.sleep(0.001)
    go.set()
    return await asyncio.gather(*tasks)


@pytest.mark.parametrize(
    ("readers", "outcomes"),
    [
        pytest.param([[50], [50]], ["read", "read"], id="there is room"),
        pytest.param([[50], [50], [1]], ["gave up", "read", "read"], id="the oldest makes room"),
        pytest.param([[10], [10], [95]], ["gave up", "gave up", "read"], id="as many as it takes"),
        pytest.param([[50, 60]], ["gave up"], id="one alone is too large"),
        pytest.param([[50, 20, 20], [30]], ["gave up", "read"], id="the oldest, though it grows"),
    ],
)
def test_who_makes_room(readers: list[list[int]], outcomes: list[str]) -> None:
    assert asyncio.run(together(Bodies(100), *readers)) == outcomes


def test_room_is_given_back() -> None:
    async def scenario() -> None:
        bodies = Bodies(100)
        for _ in range(3):
            assert await together(bodies, [60], [60]) == ["gave up", "read"]

    asyncio.run(scenario())


def test_a_reader_that_is_stopped_is_stopped() -> None:
    async def scenario() -> None:
        bodies = Bodies(100)
        task = asyncio.create_task(read(bodies, [60], asyncio.Event()))
        await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await together(bodies, [60]) == ["read"]

    asyncio.run(scenario())
