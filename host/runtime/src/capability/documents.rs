//! Interface `documents`: documents of the workspace.

use super::super::bindings::assurance::area::documents::{
    Condition, Document, Error, Group, Host, Page, Query, Write,
};
use super::super::convert::{document as convert, same};
use super::super::instance::CallState;
use super::{CapabilityError, convert_error};
use assurance_core::domain::manifest::Capability;
use assurance_work::DocumentError;

type DocumentHostCallResult<T> = Result<T, CapabilityError<Error>>;

impl Host for CallState {
    async fn get(
        &mut self,
        collection: String,
        id: String,
    ) -> DocumentHostCallResult<Option<Document>> {
        let found = self.enter(Capability::Documents)?.get(&collection, &id).await?;
        Ok(found.map(convert::document))
    }

    async fn get_many(
        &mut self,
        collection: String,
        ids: Vec<String>,
    ) -> DocumentHostCallResult<Vec<Document>> {
        let found = self.enter(Capability::Documents)?.get_many(&collection, &ids).await?;
        Ok(found.into_iter().map(convert::document).collect())
    }

    async fn find(&mut self, query: Query) -> DocumentHostCallResult<Page> {
        let page = self.enter(Capability::Documents)?.query(&convert::query(query)).await?;
        Ok(convert::page(page))
    }

    async fn count(
        &mut self,
        collection: String,
        conditions: Vec<Condition>,
        at_most: Option<u32>,
    ) -> DocumentHostCallResult<u64> {
        let conditions = convert::conditions(conditions);
        Ok(self.enter(Capability::Documents)?.count(&collection, &conditions, at_most).await?)
    }

    async fn count_by(
        &mut self,
        collection: String,
        conditions: Vec<Condition>,
        fields: Vec<String>,
    ) -> DocumentHostCallResult<Vec<Group>> {
        let conditions = convert::conditions(conditions);
        let groups =
            self.enter(Capability::Documents)?.count_by(&collection, &conditions, &fields).await?;
        Ok(groups.into_iter().map(convert::group).collect())
    }

    async fn apply(
        &mut self,
        collection: String,
        writes: Vec<Write>,
    ) -> DocumentHostCallResult<Vec<u64>> {
        let writes = writes.into_iter().map(convert::write).collect();
        let unchecked = self.enter(Capability::Documents)?.charge_writes(collection, writes)?;
        let checked = self.compute(unchecked.bytes(), move || unchecked.check()).await??;
        Ok(self.unit(Capability::Documents)?.apply(checked).await?)
    }

    convert_error!();
}

same!(DocumentError => Error {
    NotFound, AlreadyExists, VersionConflict(version), UniqueConflict(fields), InvalidCursor,
    Misuse(what), LimitExceeded
});
