//! Bulk operations, as they are stored and as nodes tell each other of them.

use crate::golden_forms::{Coding, Forms, samples, variants};

pub fn bulks(forms: &mut Forms) {
    use campanile_schema::{
        peer::bulk::{BulkAnswer, BulkCall},
        stored::bulk::{BulkChange, BulkCounts, BulkItem, BulkPage, BulkPlace, StoredBulkFilter},
    };
    use samples::bulk::{
        answers, calls, changes, counts, filter, looked, looks, marks, page, places, stored, worked, works,
    };
    let none = StoredBulkFilter::default();
    forms.samples("bulk::StoredBulkFilter", Coding::named(), [("every field", filter()), ("everything", none)]);
    forms.enumeration("bulk::BulkPlace", Coding::named(), variants!(BulkPlace: Shard, Page), places());
    let items = [("of a job", page().items.remove(0)), ("of a run", page().items.remove(1))];
    forms.samples::<BulkItem>("bulk::BulkItem", Coding::named(), items);
    forms.samples("bulk::BulkFailure", Coding::named(), [("every field", counts().failures.remove(0))]);
    let all = [("every field", counts()), ("none", BulkCounts::default())];
    forms.samples("bulk::BulkCounts", Coding::named(), all);
    let all = [("every field", page()), ("the last one", BulkPage { items: Vec::new(), next: None })];
    forms.samples("bulk::BulkPage", Coding::named(), all);
    forms.samples("bulk::StoredBulk", Coding::named(), stored());
    forms.samples("bulk::BulkMark", Coding::named(), marks());
    let variants = variants!(BulkChange: Created, Begun, Done, Aborted, Deleting, Undone, Forgotten);
    forms.enumeration("bulk::BulkChange", Coding::named(), variants, changes());
    forms.samples("bulk::BulkLook", Coding::named(), looks());
    forms.samples("bulk::BulkLooked", Coding::named(), looked());
    forms.samples("bulk::BulkWork", Coding::named(), works());
    forms.samples("bulk::BulkWorked", Coding::named(), worked());
    let variants = variants!(BulkCall: Create, Get, List, Abort, Undo, Begin, Report, Proceed, Look, Work);
    forms.enumeration("bulk::BulkCall", Coding::named(), variants, calls());
    let variants = variants!(BulkAnswer: State, List, Looked, Worked);
    forms.enumeration("bulk::BulkAnswer", Coding::named(), variants, answers());
}
