//! Vectors in PostgreSQL with the `pgvector` extension, shared between processes.

use std::fmt;

use async_trait::async_trait;
use tokio::{sync::Mutex, task::JoinHandle};
use tokio_postgres::{Client, Config, NoTls, Row, types::ToSql};

use super::{Key, VectorStore};
use crate::EmbeddingError;

/// One table of a database. Vectors are never removed from it: other processes may use them.
///
/// The connection is not encrypted: use a local server, a socket or a tunnel. It is made anew when it breaks.
pub struct PgVectorStore {
    config: Config,
    table: String,
    connection: Mutex<Option<Connection>>,
}

/// A client and the task that moves its bytes.
struct Connection {
    client: Client,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl fmt::Debug for PgVectorStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgVectorStore").field("table", &self.table).finish_non_exhaustive()
    }
}

impl PgVectorStore {
    /// Opens a table of the database at `url` (`postgres://…` or `host=… user=…`), or makes it, and the extension,
    /// for vectors of so many dimensions.
    ///
    /// # Errors
    /// When the database cannot be reached, has no `pgvector`, or the table has other dimensions.
    pub async fn open(url: &str, table: &str, dimensions: usize) -> Result<Self, EmbeddingError> {
        let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if table.is_empty()
            || table.len() > 63
            || !table.bytes().all(word)
            || table.as_bytes()[0].is_ascii_digit()
        {
            return Err(EmbeddingError::store("the table's name may have small letters, digits and _ only"));
        }
        // The parser's error could repeat the password.
        let config = url
            .parse::<Config>()
            .map_err(|_| EmbeddingError::store("the address of the database is malformed"))?;
        let store = Self { config, table: format!("\"{table}\""), connection: Mutex::new(None) };
        let table = &store.table;
        store.run("CREATE EXTENSION IF NOT EXISTS vector", &[]).await?;
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {table} (key uuid PRIMARY KEY, vector vector({dimensions}) NOT NULL)"
        );
        store.run(&create, &[]).await?;
        let look =
            "SELECT atttypmod FROM pg_attribute WHERE attrelid = $1::text::regclass AND attname = 'vector'";
        let rows = store.run(look, &[table]).await?;
        let stored = rows.first().map_or(0, |row| row.get::<_, i32>(0));
        let stored = usize::try_from(stored).unwrap_or(0);
        if stored != dimensions {
            return Err(EmbeddingError::Dimension { stored, model: dimensions });
        }
        Ok(store)
    }

    async fn run(&self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, EmbeddingError> {
        let mut connection = self.connection.lock().await;
        let usable = connection.take().filter(|one| !one.client.is_closed());
        let usable = match usable {
            Some(usable) => usable,
            None => {
                let (client, driver) =
                    self.config.connect(NoTls).await.map_err(|error| {
                        EmbeddingError::store_because("PostgreSQL does not answer", error)
                    })?;
                let driver = tokio::spawn(async move {
                    if let Err(error) = driver.await {
                        tracing::warn!(error = %error, "the connection to PostgreSQL broke");
                    }
                });
                Connection { client, driver }
            }
        };
        let rows = connection.insert(usable).client.query(statement, values).await;
        rows.map_err(|error| EmbeddingError::store_because("PostgreSQL refuses", error))
    }
}

fn texts(keys: &[Key]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn written(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

#[async_trait]
impl VectorStore for PgVectorStore {
    async fn missing(&self, keys: &[Key]) -> Result<Vec<Key>, EmbeddingError> {
        let look = format!("SELECT key::text FROM {} WHERE key = ANY($1::text[]::uuid[])", self.table);
        let rows = self.run(&look, &[&texts(keys)]).await?;
        let found: std::collections::HashSet<Key> =
            rows.iter().filter_map(|row| Key::parse(row.get::<_, &str>(0))).collect();
        Ok(keys.iter().filter(|key| !found.contains(key)).copied().collect())
    }

    async fn put(&self, vectors: Vec<(Key, Vec<f32>)>) -> Result<(), EmbeddingError> {
        let put = format!(
            "INSERT INTO {} SELECT one.key::uuid, one.vector::vector FROM unnest($1::text[], $2::text[]) AS one(key, vector) \
             ON CONFLICT (key) DO UPDATE SET vector = EXCLUDED.vector",
            self.table
        );
        let keys: Vec<String> = vectors.iter().map(|(key, _)| key.to_string()).collect();
        let vectors: Vec<String> = vectors.iter().map(|(_, vector)| written(vector)).collect();
        self.run(&put, &[&keys, &vectors]).await.map(drop)
    }

    async fn nearest(
        &self,
        query: &[f32],
        limit: usize,
        among: Option<&[Key]>,
    ) -> Result<Vec<(Key, f32)>, EmbeddingError> {
        let select = format!(
            "SELECT key::text, 1 - (vector <=> $1::text::vector) FROM {} \
             WHERE $3::text[] IS NULL OR key = ANY($3::text[]::uuid[]) \
             ORDER BY vector <=> $1::text::vector, key LIMIT $2",
            self.table
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.run(&select, &[&written(query), &limit, &among.map(texts)]).await?;
        Ok(rows
            .iter()
            .filter_map(|row| Some((Key::parse(row.get::<_, &str>(0))?, row.get::<_, f64>(1) as f32)))
            .collect())
    }

    async fn forget(&self, _: &[Key]) -> Result<(), EmbeddingError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_that_is_down_is_an_error_that_does_not_show_the_password() {
        let error = PgVectorStore::open("postgres://me:s3cret@127.0.0.1:1/db", "tools", 3).await.unwrap_err();
        assert_eq!(error.code(), "embedding.store");
        assert!(!format!("{error:?}").contains("s3cret"));
        let error = PgVectorStore::open("postgres://me:s3cret@[bad", "tools", 3).await.unwrap_err();
        assert!(!format!("{error:?}").contains("s3cret"));
        assert!(PgVectorStore::open("host=127.0.0.1", "x\"; drop", 3).await.is_err());
    }

    #[tokio::test]
    #[ignore = "needs PostgreSQL with pgvector; scripts/test_pgvector.sh starts one"]
    async fn keeps_the_contract_of_a_store() {
        let find = |name: &str| std::env::vars().find(|(other, _)| other == name).map(|(_, value)| value);
        let url =
            find("GATEWRIGHT_TEST_POSTGRES").expect("scripts/test_pgvector.sh sets GATEWRIGHT_TEST_POSTGRES");
        let store = PgVectorStore::open(&url, "contract_vectors", 3).await.unwrap();
        super::super::contract::check(&store, false).await;
        let again = PgVectorStore::open(&url, "contract_vectors", 3).await.unwrap();
        assert!(
            again.missing(&[Key([2; 16])]).await.unwrap().is_empty(),
            "another instance sees the same vectors"
        );
        let error = PgVectorStore::open(&url, "contract_vectors", 4).await.unwrap_err();
        assert!(matches!(error, EmbeddingError::Dimension { stored: 3, model: 4 }));
    }
}
