"""The numbers of messages: what a reader gets that comes late, or comes back."""

from __future__ import annotations

from linerate.watch.feed import Feed, Update, clear


def _kinds(feed: Feed, number: int = 0) -> list[str]:
    return [f"{message.kind} {message.data}" for message in feed.since(number)]


def test_a_state_is_kept_once_and_a_series_whole() -> None:
    feed = Feed()
    for value in range(3):
        feed.add([Update("run", {"n": value}, "run"), Update("point", {"n": value})])
    assert _kinds(feed) == [
        'clear {"kinds":[]}',
        'point {"n":0}',
        'point {"n":1}',
        'run {"n":2}',
        'point {"n":2}',
    ]


def test_a_long_series_loses_its_oldest_messages() -> None:
    feed = Feed(kept_most=3)
    feed.add([Update("mark", {})])
    feed.add(Update("point", {"n": value}) for value in range(10))
    assert _kinds(feed)[1:] == ["mark {}", 'point {"n":7}', 'point {"n":8}', 'point {"n":9}']


def test_who_comes_back_after_a_change_of_runs_is_told_to_forget_the_earlier_run() -> None:
    feed = Feed()
    feed.add([Update("study", {}, "study"), Update("run", {}, "run"), Update("point", {"n": 1})])
    seen = feed.since(0)[-1]
    feed.add([clear(["run", "point"]), Update("point", {"n": 2})])
    assert _kinds(feed, feed.number_of(seen.id)) == ['clear {"kinds":["run","point"]}', 'point {"n":2}']
    assert _kinds(feed)[1] == "study {}"


def test_a_key_can_be_used_again_after_it_was_cleared() -> None:
    feed = Feed()
    feed.add([Update("run", {"n": 1}, "run"), clear(["run"]), Update("step", {}, "step 0")])
    feed.add([Update("run", {"n": 2}, "run"), Update("run", {"n": 3}, "run")])
    assert _kinds(feed)[-1] == 'run {"n":3}'
    assert sum(kind.startswith("run") for kind in _kinds(feed)) == 1


def test_the_number_of_a_message_that_is_still_to_come_is_not_believed() -> None:
    feed = Feed()
    epoch = feed.since(0)[0].id.partition(".")[0]
    assert feed.number_of(f"{epoch}.{10**30}") == 1
