"""Every method of lancedb's query builders."""

from datetime import timedelta

import lancedb.query
import pyarrow as pa
from lancedb.expr import col, lit
from lancedb.index import FTS, BTree, IvfFlat
from lancedb.pydantic import LanceModel, Vector
from lancedb.query import BooleanQuery, BoostQuery, ColumnOrdering, MatchQuery, MultiMatchQuery, Occur, PhraseQuery
from lancedb.rerankers import LinearCombinationReranker
from peers import observe

# No two films are as near as each other.
NEAR = [5.27, 0.0, 0.0, 0.0]
# Unlike the default, it ranks no two rows as equal.
WEIGHTED = LinearCombinationReranker()
BY_TITLE = ColumnOrdering(column_name="title", ascending=True, nulls_first=False)
BY_ID = ColumnOrdering(column_name="id", ascending=False, nulls_first=False)
LATER = timedelta(seconds=60)


class Film(LanceModel):
    id: int
    title: str
    vector: Vector(4)


def films(start: int, end: int) -> pa.Table:
    """Returns films whose vectors are in two distant groups. A few are of cats, no two equally often."""
    ids = range(start, end)
    titles = [f"the quick dog {'cat ' * (1 + number // 50)}" if number % 50 == 2 else "dog the quick" for number in ids]
    vectors = [[number / 10 + number % 2 * 1000, 0, 0, 0] for number in ids]
    return pa.table(
        {
            "id": list(ids),
            "title": titles,
            "vector": pa.array(vectors, pa.list_(pa.float32(), 4)),
        }
    )


def searched_table(peer):
    """Creates a table with indices, a second fragment outside of these, and deleted rows."""
    table = peer.create(films(0, 300))
    table.create_index("title", config=FTS(with_position=True))
    table.create_index("id", config=BTree())
    table.create_index("vector", config=IvfFlat(num_partitions=2))
    table.add(films(300, 304))
    table.delete("id in (7, 8)")
    return table


BUILDERS = {
    "LanceEmptyQueryBuilder": lambda table: table.search(),
    "LanceVectorQueryBuilder": lambda table: table.search(NEAR),
    "LanceFtsQueryBuilder": lambda table: table.search("cat", query_type="fts"),
    "LanceHybridQueryBuilder": lambda table: table.search(query_type="hybrid").vector(NEAR).text("cat").rerank(WEIGHTED),
    "LanceTakeQueryBuilder": lambda table: table.take_offsets([1, 7, 301]),
    "AsyncQuery": lambda table: table._table.query(),
    "AsyncVectorQuery": lambda table: table._table.vector_search(NEAR),
    "AsyncFTSQuery": lambda table: table._table.query().nearest_to_text("cat"),
    "AsyncHybridQuery": lambda table: table._table.query().nearest_to(NEAR).nearest_to_text("cat").rerank(WEIGHTED),
    "AsyncTakeQuery": lambda table: table._table.take_offsets([1, 7, 301]),
}
# The keys are methods, some with a variant. The values return a query, which is executed, or a result.
STEPS = {
    "bypass_vector_index": lambda query: query.bypass_vector_index(),
    "column": lambda query: query.column("vector"),
    "distance_range": lambda query: query.distance_range(0.1, 3.0),
    "distance_range: one bound": lambda query: query.distance_range(upper_bound=2.0),
    "distance_type": lambda query: query.distance_type("cosine").bypass_vector_index(),
    "distance_type: of another index": lambda query: query.distance_type("dot"),
    "ef": lambda query: query.ef(20),
    "explain_plan": lambda query: len(plan_of(query.explain_plan())) > 20,
    "explain_plan: verbose": lambda query: len(plan_of(query.explain_plan(True))) > 20,
    "analyze_plan": lambda query: "output_rows" in plan_of(query.analyze_plan()),
    "fast_search": lambda query: query.fast_search().limit(400),
    "fragment_ids": lambda query: query.fragment_ids([1]),
    "get_query": lambda query: query.get_query(),
    "limit": lambda query: query.limit(3),
    "limit: none": lambda query: query.limit(0),
    "limit: all": lambda query: query.limit(400),
    "maximum_nprobes": lambda query: query.minimum_nprobes(1).maximum_nprobes(1).limit(200),
    "minimum_nprobes": lambda query: query.minimum_nprobes(2).limit(200),
    "metric": lambda query: query.metric("cosine").bypass_vector_index(),
    "nearest_to": lambda query: query.nearest_to(NEAR),
    "nearest_to: several": lambda query: query.nearest_to([NEAR, [1000.0, 0, 0, 0]]).limit(2),
    "nearest_to: not a number": lambda query: counted(query.nearest_to([float("nan"), 0.0, 0.0, 0.0])),
    "nearest_to: infinity": lambda query: counted(query.nearest_to([float("inf"), 0.0, 0.0, 0.0]).limit(2)),
    "nearest_to: a null": lambda query: counted(query.nearest_to([None, 0.0, 0.0, 0.0])),
    "nearest_to: too short": lambda query: query.nearest_to([0.0]),
    "nearest_to_text": lambda query: query.nearest_to_text("cat", columns=["title"]),
    "nearest_to_text: a query": lambda query: query.nearest_to_text(MatchQuery("cat") & MatchQuery("quick")),
    "nearest_to_text: a phrase": lambda query: query.nearest_to_text(PhraseQuery("quick dog", "title")),
    "nearest_to_text: a fuzzy word": lambda query: query.nearest_to_text(MatchQuery("cta", "title", fuzziness=10)),
    "nearest_to_text: a boost": lambda query: query.nearest_to_text(BoostQuery(MatchQuery("cat"), MatchQuery("dog"))),
    "nearest_to_text: several columns": lambda query: query.nearest_to_text(MultiMatchQuery("cat", ["title"])),
    "nearest_to_text: all words": lambda query: query.nearest_to_text(MatchQuery("cat dog", "title", operator="AND")),
    "nearest_to_text: any word": lambda query: query.nearest_to_text(MatchQuery("cat zebra", "title", operator="OR")),
    "nearest_to_text: a missing word": lambda query: query.nearest_to_text(MatchQuery("cat zebra", operator="AND")),
    "nearest_to_text: all words in columns": lambda query: query.nearest_to_text(
        MultiMatchQuery("cat zebra", ["title"], operator="AND")
    ),
    "nearest_to_text: or": lambda query: query.nearest_to_text(MatchQuery("cat") | MatchQuery("zebra")),
    "nearest_to_text: without": lambda query: query.nearest_to_text(
        BooleanQuery([(Occur.MUST, MatchQuery("quick")), (Occur.MUST_NOT, MatchQuery("cat"))])
    ),
    "nearest_to_text: a prefix": lambda query: query.nearest_to_text(
        MatchQuery("qui", "title", fuzziness=2, max_expansions=10, prefix_length=3)
    ),
    "nearest_to_text: a phrase with gaps": lambda query: counted(
        query.nearest_to_text(PhraseQuery("the dog", "title", slop=2))
    ),
    "nearest_to_text: a weight": lambda query: query.nearest_to_text(MatchQuery("cat", "title", boost=3.0)),
    "nprobes": lambda query: query.nprobes(1).limit(200),
    "nprobes: all": lambda query: query.nprobes(2).limit(200),
    "offset": lambda query: query.limit(3).offset(2),
    "order_by": lambda query: query.order_by([BY_ID]).limit(3),
    "order_by: twice": lambda query: query.order_by([BY_TITLE, BY_ID]).limit(3),
    "output_schema": lambda query: query.output_schema(),
    "phrase_query": lambda query: query.phrase_query(),
    "postfilter": lambda query: query.where("id > 40").postfilter(),
    "refine_factor": lambda query: query.refine_factor(2),
    "rerank": lambda query: query.rerank(LinearCombinationReranker(0.5)),
    "select": lambda query: query.select(["id"]),
    "select: expressions": lambda query: query.select({"twice": "id * 2", "upper": "upper(title)"}),
    "select: missing": lambda query: query.select(["missing"]),
    "text": lambda query: query.text("cat"),
    "to_arrow": lambda query: query.to_arrow(timeout=LATER),
    "to_batches": lambda query: query.to_batches(),
    "to_df": lambda query: query.to_df(),
    "to_list": lambda query: query.to_list(),
    "to_pandas": lambda query: query.to_pandas(),
    "to_pydantic": lambda query: query.to_pydantic(Film),
    "use_lsm": lambda query: query.use_lsm(False),
    "use_lsm: without": lambda query: query.use_lsm(True),
    "vector": lambda query: query.vector(NEAR),
    "where": lambda query: query.where("id > 40 and title like '%t'"),
    "where: an expression": lambda query: query.where(col("id") > lit(40)),
    "where: missing": lambda query: query.where("missing = 1"),
    "where: invalid": lambda query: query.where("id = "),
    "with_fragments": lambda query: query.with_fragments([1]),
    "with_row_address": lambda query: query.with_row_address(),
}
SYNC_STEPS = STEPS | {
    "where: afterwards": lambda query: query.where("id > 40", prefilter=False),
    "with_row_id": lambda query: query.with_row_id() if "Take" in type(query).__name__ else query.with_row_id(True),
}
ASYNC_STEPS = STEPS | {
    "with_row_id": lambda query: query.with_row_id(),
}
def plan_of(result) -> str:
    return lancedb.query.LOOP.run(result) if hasattr(result, "__await__") else result


def method_of(call: str) -> str:
    """Returns the method of a call, which may be a variant."""
    return call.split(":", 1)[0]


def compare(peer) -> dict[str, str]:
    """Calls each method of each builder, and executes the query."""
    table = searched_table(peer)
    outcomes = {}
    for builder, begin in BUILDERS.items():
        steps = ASYNC_STEPS if builder.startswith("Async") else SYNC_STEPS
        methods = dir(getattr(lancedb.query, builder))
        for step, run in steps.items():
            if method_of(step) in methods:
                outcomes[f"{builder}.{step}"] = observe(lambda: executed(run(begin(table))))
    return outcomes


async def counted(query):
    """Returns the number of rows. Rows at the same distance, or at one that is no number, have no order."""
    return len(await query.to_arrow())


def executed(result):
    return result.to_arrow() if hasattr(result, "to_arrow") else result
