//! The connection, the rows of the tests, and the assertions that several parts share.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, FixedSizeListArray, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray,
};
use futures::TryStreamExt;
use lancedb::query::ExecutableQuery;
use lancedb::{Connection, Result, Table, connect};

/// A connection, and the namespace in which this run creates everything.
pub struct Client {
    pub db: Connection,
    pub namespace: Vec<String>,
}

impl Client {
    /// Connects with the address, the key and the namespace in the environment. The crate requires a region, which the
    /// address replaces.
    pub async fn connect() -> Result<Self> {
        let db = connect("db://films")
            .api_key(&variable("KEY"))
            .host_override(&variable("URL"))
            .region("none")
            .execute()
            .await?;
        let namespace = vec![variable("NAMESPACE")];
        Ok(Self { db, namespace })
    }

    pub async fn create(&self, name: &str, rows: RecordBatch) -> Result<Table> {
        let builder = self.db.create_table(name, rows);
        builder.namespace(self.namespace.clone()).execute().await
    }
}

/// Returns a variable of the environment, which must exist.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not in the environment"))
}

/// Returns films with their id, their title and the vector `[id, 0]`.
pub fn films(ids: Range<i64>) -> RecordBatch {
    let titles = ids.clone().map(|id| Some(format!("film number {id}")));
    let vectors = ids.clone().map(|id| Some([Some(id as f32), Some(0.0)]));
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("id", Arc::new(Int64Array::from_iter(ids)), true),
        ("title", Arc::new(StringArray::from_iter(titles)), true),
        ("vector", Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2)), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("the columns have the same length")
}

/// Returns rows as the reader that `merge_insert` requires.
pub fn reader(rows: RecordBatch) -> Box<dyn RecordBatchReader + Send> {
    let schema = rows.schema();
    Box::new(RecordBatchIterator::new([Ok(rows)], schema))
}

/// Returns the batches of the result of a query.
pub async fn batches(query: &impl ExecutableQuery) -> Result<Vec<RecordBatch>> {
    query.execute().await?.try_collect().await
}

/// Returns a column of numbers in the order of the rows.
pub async fn numbers<T: ArrowPrimitiveType>(
    query: &impl ExecutableQuery,
    column: &str,
) -> Result<Vec<Option<T::Native>>> {
    Ok(numbers_in::<T>(&batches(query).await?, column))
}

pub fn numbers_in<T: ArrowPrimitiveType>(batches: &[RecordBatch], column: &str) -> Vec<Option<T::Native>> {
    batches.iter().flat_map(|batch| batch[column].as_primitive::<T>().iter()).collect()
}

/// Returns the ids of films in the order of the rows.
pub async fn ids(query: &impl ExecutableQuery) -> Result<Vec<i64>> {
    Ok(ids_in(&batches(query).await?))
}

pub fn ids_in(batches: &[RecordBatch]) -> Vec<i64> {
    numbers_in::<Int64Type>(batches, "id").into_iter().flatten().collect()
}

/// Returns a column of text in the order of the rows.
pub async fn texts(query: &impl ExecutableQuery, column: &str) -> Result<Vec<String>> {
    let found = batches(query).await?;
    let texts = found.iter().flat_map(|batch| batch[column].as_string::<i32>().iter().flatten());
    Ok(texts.map(String::from).collect())
}

/// Returns the values in ascending order, for results without an order.
pub fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort();
    values
}

/// Returns the names of the columns of a table.
pub async fn columns_of(table: &Table) -> Result<Vec<String>> {
    let schema = table.schema().await?;
    Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
}

/// Asserts that a call fails with an error whose text contains a sentence of the catalog or of the crate.
#[track_caller]
pub fn assert_refused<T>(call: &str, result: Result<T>, text: &str) {
    match result {
        Ok(_) => panic!("{call} must fail with {text:?}"),
        Err(error) => assert!(error.to_string().contains(text), "{call} must fail with {text:?}, not with {error}"),
    }
}
