//! Interface `documents`: documents of the workspace.

use super::super::bindings::assurance::area::documents::{
    Condition, Document, Error, Group, Host, Page, Query, Write,
};
use super::super::convert::{document as convert, same};
use super::super::instance::CallState;
use super::super::trap::FatalHostCallError;
use super::{CapabilityError, convert_error};
use assurance_core::domain::manifest::Capability;
use assurance_work::{DocumentError, UnitOfWork};

type DocumentHostCallResult<T> = Result<T, CapabilityError<Error>>;

impl CallState {
    fn documents(&mut self) -> wasmtime::Result<&mut UnitOfWork> {
        self.enter(Capability::Documents)
    }
}

impl Host for CallState {
    async fn get(
        &mut self,
        collection: String,
        id: String,
    ) -> DocumentHostCallResult<Option<Document>> {
        let found = self.documents()?.get(&collection, &id).await?;
        Ok(found.map(convert::document))
    }

    async fn get_many(
        &mut self,
        collection: String,
        ids: Vec<String>,
    ) -> DocumentHostCallResult<Vec<Document>> {
        let found = self.documents()?.get_many(&collection, &ids).await?;
        Ok(found.into_iter().map(convert::document).collect())
    }

    async fn find(&mut self, query: Query) -> DocumentHostCallResult<Page> {
        let page = self.documents()?.query(&convert::query(query)).await?;
        Ok(convert::page(page))
    }

    async fn count(
        &mut self,
        collection: String,
        conditions: Vec<Condition>,
        at_most: Option<u32>,
    ) -> DocumentHostCallResult<u64> {
        let conditions = convert::conditions(conditions);
        Ok(self.documents()?.count(&collection, &conditions, at_most).await?)
    }

    async fn count_by(
        &mut self,
        collection: String,
        conditions: Vec<Condition>,
        fields: Vec<String>,
    ) -> DocumentHostCallResult<Vec<Group>> {
        let conditions = convert::conditions(conditions);
        let groups = self.documents()?.count_by(&collection, &conditions, &fields).await?;
        Ok(groups.into_iter().map(convert::group).collect())
    }

    async fn apply(
        &mut self,
        collection: String,
        writes: Vec<Write>,
    ) -> DocumentHostCallResult<Vec<u64>> {
        let writes = writes.into_iter().map(convert::write).collect();
        let unchecked = self.documents()?.charge_writes(collection, writes)?;
        let checked = self.compute(unchecked.bytes(), move || unchecked.check()).await??;
        let unit = self.unit().ok_or(FatalHostCallError::InDescribe(Capability::Documents));
        let unit = unit.map_err(wasmtime::Error::from)?;
        Ok(unit.apply(checked).await?)
    }

    convert_error!();
}

same!(DocumentError => Error {
    NotFound, AlreadyExists, VersionConflict(version), UniqueConflict(fields), InvalidCursor,
    Misuse(what), LimitExceeded
});
