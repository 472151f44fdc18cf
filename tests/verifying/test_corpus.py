"""What `migrate` calls done is proven: the old file through the webhook is the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cases import cases
from tests.verifying.proofs import is_done, migrated, of_files, plan_of
from webhook.verifying.comparison import Result

if TYPE_CHECKING:
    from tests.cases import Case

CASES = cases()
# Done, but not proven by the file alone; by the file, with the reason.
OWN_NOT_PROVABLE: dict[str, str] = {}


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_a_case_that_is_done_is_equal(case: Case) -> None:
    plan = plan_of(case)
    result, new = migrated(case.file, plan)
    found = of_files(case.file.name, case.file.read_bytes(), new, plan)
    if is_done(result):
        rest = {each.why for each in found if each.result is not Result.EQUAL}
        reason = OWN_NOT_PROVABLE.get(str(case))
        assert rest == ({reason} if reason else set())
    assert found


def test_most_cases_are_done() -> None:
    assert sum(is_done(migrated(case.file, plan_of(case))[0]) for case in CASES) >= 35
