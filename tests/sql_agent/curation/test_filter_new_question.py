"""New questions against existing sets: every method, what the report says, and the embedding
endpoint.
"""

from http.server import ThreadingHTTPServer

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql_agent.curation.filter_new_question import main
from sql_agent.curation.near_duplicates import NEAR, NearDuplicates, pairs_of, similarity
from tests.corpora import cases_of, write_lines
from tests.serving import JsonHandler, serving
from tests.sql_agent.curation.questions import rows_of

KEY = "key-canary-0123456789"
# What the stand-in's vectors mean: texts about one thing point in one direction.
TOPICS = {"发烧": 0, "体温": 0, "高血压": 1, "保存": 2}


class EmbeddingServer(ThreadingHTTPServer):
    """OpenAI's embeddings: a vector by topic; `faults` are statuses played first."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), EmbeddingHandler)
        self.faults, self.inputs, self.size = [], [], 4
        self.url = f"http://127.0.0.1:{self.server_port}/v1"


class EmbeddingHandler(JsonHandler):
    def do_POST(self):
        body = self.asked()
        if self.server.faults:
            error = {"message": f"down {KEY}"}
            return self.answer({"error": error}, self.server.faults.pop(0))
        assert self.path == "/v1/embeddings"
        assert self.headers["Authorization"] == f"Bearer {KEY}"
        self.server.inputs += body["input"]
        data = [
            {"object": "embedding", "index": index, "embedding": self.vector(text)}
            for index, text in enumerate(body["input"])
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return self.answer({"object": "list", "data": data[::-1], "model": "m", "usage": usage})

    def vector(self, text):
        topics = [place for word, place in TOPICS.items() if word in text] or [3]
        return [2.0 * (place in topics) + 0.01 for place in range(self.server.size)]


@pytest.fixture
def embedding():
    server = EmbeddingServer()
    with serving(server):
        yield server


def questions(path, *texts):
    rows = [{"id": f"{path.stem}{n}", "question": text} for n, text in enumerate(texts)]
    return write_lines(path, rows)


def kept_and_dropped(tmp_path, source, *options):
    output = tmp_path / "new.jsonl"
    assert main([str(source), "--output", str(output), *map(str, options)]) == 0
    return rows_of(output), rows_of(tmp_path / "new.dropped.jsonl")


def test_each_method_finds_what_the_stricter_ones_do_not(tmp_path):
    old = tmp_path / "old.parquet"
    known = ["布洛芬缓释胶囊的不良反应有哪些？", "阿莫西林胶囊怎么保存？"]
    parquet.write_table(pa.table({"id": ["a", "b"], "question": known}), old)
    new = questions(
        tmp_path / "in.jsonl",
        "阿莫西林胶囊怎么保存？",
        "阿莫西林胶囊 怎么保存?",
        "请问布洛芬缓释胶囊的不良反应有哪些呢？",
        "头孢克肟分散片怎么保存？",
        "头孢克肟分散片怎么保存",
        "布洛芬缓释胶囊的禁忌有哪些？",
    )
    kept, dropped = kept_and_dropped(tmp_path, new, "--against", old)
    assert kept == [row for row in rows_of(new) if row["id"] in ("in3", "in5")]
    assert [(row["id"], row["method"], row["known"]["id"]) for row in dropped] == [
        ("in0", "same", "b"),
        ("in1", "same", "b"),
        ("in2", "near", "a"),
        ("in4", "same", "in3"),
    ]
    assert dropped[2]["known"] == {"file": str(old), "id": "a", "question": known[0]}
    assert 0.8 <= dropped[2]["score"] < 1
    assert dropped[0]["score"] == 1


@pytest.fixture
def embedded(tmp_path, embedding, monkeypatch, no_waiting):
    """Runs the program with the stand-in's embeddings; returns its exit code."""
    monkeypatch.setenv("TEACHER_API_KEY", KEY)
    monkeypatch.setenv("LLM_CACHE", str(tmp_path / "cache.sqlite"))

    def run(source, output, *options):
        model = ["--embedding-model", "openai/m", "--embedding-base-url", embedding.url]
        return main([str(source), "--output", str(output), *model, *options])

    return run


def test_embeddings_find_the_same_meaning_and_are_asked_once(tmp_path, embedding, embedded):
    old = questions(tmp_path / "old.jsonl", "发烧了怎么办？")
    new = questions(
        tmp_path / "in.jsonl",
        "胶囊放哪里保存？",
        "体温很高该做什么？",
        "高血压能喝酒吗？",
        "血压高（高血压）可以饮酒么",
    )
    embedding.faults = [429]
    assert embedded(new, tmp_path / "new.jsonl", "--against", str(old)) == 0
    assert [row["id"] for row in rows_of(tmp_path / "new.jsonl")] == ["in0", "in2"]
    dropped = rows_of(tmp_path / "new.dropped.jsonl")
    assert [(row["id"], row["method"], row["known"]["id"]) for row in dropped] == [
        ("in1", "embedding", "old0"),
        ("in3", "embedding", "in2"),
    ]
    assert len(embedding.inputs) == 5
    assert embedded(new, tmp_path / "b.jsonl", "--against", str(old)) == 0
    assert (tmp_path / "b.jsonl").read_text() == (tmp_path / "new.jsonl").read_text()
    assert len(embedding.inputs) == 5


def test_a_refusing_endpoint_ends_the_program_without_the_key(tmp_path, embedding, embedded, capfd):
    new = questions(tmp_path / "in.jsonl", "发烧了怎么办？")
    embedding.faults = [401]
    assert embedded(new, tmp_path / "new.jsonl") == 1
    shown = capfd.readouterr()
    assert "HTTP 401" in shown.err
    assert KEY not in shown.err + shown.out
    assert not (tmp_path / "new.jsonl").exists()


@pytest.mark.parametrize(("content", "says"), cases_of(__file__, "files_without_questions"))
def test_a_file_without_questions_is_refused(tmp_path, capsys, content, says):
    (tmp_path / "in.jsonl").write_text(content)
    assert main([str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "new.jsonl")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "new.jsonl").exists()


def test_a_value_that_no_line_of_json_can_hold_is_refused_before_anything_is_written(
    tmp_path, capsys
):
    source = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"question": ["怎么保存？"], "scan": [b"\xff\xd8"]}), source)
    assert main([str(source), "--output", str(tmp_path / "new.jsonl")]) == 2
    assert "column scan" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_an_output_that_is_an_input_is_refused_even_with_force(tmp_path, capsys):
    new = questions(tmp_path / "in.jsonl", "发烧了怎么办？")
    known = questions(tmp_path / "known.jsonl", "头疼怎么办？")
    before = new.read_bytes(), known.read_bytes()
    for output in (new, known):
        flags = ["--against", str(known), "--output", str(output), "--force"]
        assert main([str(new), *flags]) == 2
        assert output.name in capsys.readouterr().err
    assert (new.read_bytes(), known.read_bytes()) == before


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(alphabet="药片怎么吃", max_size=12), min_size=1, max_size=8),
    st.sampled_from([0.5, NEAR, 1.0]),
)
def test_the_nearest_is_that_of_comparing_with_all(texts, near):
    *known, asked = texts
    found = NearDuplicates(near)
    for number, text in enumerate(known):
        found.add(str(number), text)
    scores = [similarity(pairs_of(asked), pairs_of(text)) for text in known]
    best = max(scores, default=0.0)
    assert found.nearest(asked) == ((str(scores.index(best)), best) if best >= near else None)
