"""docs/RULES.md held to both sides: the rule text, and the tests and comments that name its clauses."""

from collections import Counter
from itertools import groupby

from tests.support.rules.clauses import (
    ENGINE,
    ROOT,
    RULE_TEXT,
    cited_in_engine,
    clauses,
    marked_tests,
    rows_on_the_page,
)

ORIGINAL = ROOT.parent / "shared" / "rules" / "spectacular-bid.txt"
IDS = {clause.id for clause in clauses()}


def test_every_table_line_is_understood() -> None:
    """No row is passed over because of its form, and no id comes twice."""
    assert len(clauses()) == rows_on_the_page()
    assert [name for name, times in Counter(clause.id for clause in clauses()).items() if times > 1] == []


def test_the_page_quotes_the_whole_rule_text_and_nothing_else() -> None:
    """Heading by heading the quotes, put together again, are the rule text."""
    sentences = [clause for clause in clauses() if "." in clause.id]
    quoted = [
        " ".join([heading, *(clause.text.replace(r"\|", "|") for clause in group)])
        for heading, group in groupby(sentences, key=lambda clause: clause.heading)
    ]
    text = RULE_TEXT.read_text(encoding="utf-8")
    assert " ".join(quoted).split() == text.split()


def test_the_engine_s_rule_text_is_the_original_where_both_exist() -> None:
    """The text that is shown and quoted is the authority's, byte for byte."""
    assert not ORIGINAL.exists() or ORIGINAL.read_bytes() == RULE_TEXT.read_bytes()


def test_every_clause_has_a_test_or_says_why_not() -> None:
    """The tests named exist and are marked with the clause; a clause without one has a reason and no marker."""
    carried = {(test.name, name) for test in marked_tests() for name in test.ids}
    named = {(test, clause.id) for clause in clauses() for test in clause.tests}
    assert sorted(named - carried) == []
    assert [clause.id for clause in clauses() if not clause.tests and not clause.reason.startswith("none")] == []
    without = {clause.id for clause in clauses() if not clause.tests}
    assert sorted(without & {name for _, name in carried}) == []


def test_every_marker_names_a_clause() -> None:
    """No test carries an id that is not on the page."""
    assert [(test.path, test.name) for test in marked_tests() if not test.ids <= IDS] == []


def test_a_name_on_the_page_means_one_test() -> None:
    """Tests are named without their files, so no two of one name carry the same clause."""
    times = Counter((name, test.name) for test in marked_tests() for name in test.ids)
    assert [name for name, count in times.items() if count > 1] == []


def test_every_id_in_the_engine_is_on_the_page_with_its_file() -> None:
    """Comments and docstrings name clauses that exist, and the page says where each is carried out."""
    cited = {(name, path) for path, names in cited_in_engine().items() for name in names}
    on_the_page = {(clause.id, path) for clause in clauses() for path in clause.files}
    assert sorted(cited - on_the_page) == []
    assert [path for _, path in on_the_page if not (ENGINE / path).is_file()] == []


def test_readings_and_sentences_are_all_there() -> None:
    """The ids by kind: eighty clauses of the rule text, forty-seven readings."""
    assert sum("." in name for name in IDS) == 80
    assert sum("." not in name for name in IDS) == 47
