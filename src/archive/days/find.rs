//! Runs of a directory of days, newest first. In memory are one block of each file of the day that is read, and the runs that were
//! started again.

use super::{
    Day, DayFile,
    directory::{ArchiveDirectory, DayPart},
    file::Runs,
    place,
};
use campanile_ports::StoreError;
use campanile_schema::{
    ids::{JobId, RunId},
    record::{RunRecord, RunState},
};
use campanile_store::archive::record::LogOf;
use std::{collections::HashMap, ops::ControlFlow, path::Path};

/// Which runs; None: any.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub tenant: Option<String>,
    pub job: Option<JobId>,
    pub state: Option<RunState>,
    pub run: Option<RunId>,
    /// Ended at this instant or later, ms since 1970.
    pub from_ms: Option<i64>,
    /// Ended before this instant.
    pub to_ms: Option<i64>,
    /// Behind this one, in the order newest first.
    pub after: Option<(i64, u64)>,
}

impl RunFilter {
    fn holds(&self, record: &RunRecord) -> bool {
        let at = place(record);
        self.tenant.as_ref().is_none_or(|tenant| *tenant == record.tenant)
            && self.job.is_none_or(|job| job == record.job)
            && self.state.is_none_or(|state| state == record.state)
            && self.run.is_none_or(|run| run == record.run)
            && self.from_ms.is_none_or(|from| at.0 >= from)
            && self.to_ms.is_none_or(|to| at.0 < to)
            && self.after.is_none_or(|after| at < after)
    }

    fn touches(&self, day: Day) -> bool {
        self.from_ms.is_none_or(|from| day.end_ms() > from)
            && self.to_ms.is_none_or(|to| day.begin_ms() < to)
            && self.after.is_none_or(|(ended, _)| day.begin_ms() <= ended)
    }
}

/// See the module's text.
pub struct Archive {
    /// Newest day first.
    days: Vec<(Day, Vec<DayPart>)>,
    /// The highest generation of each run that was started again.
    again: HashMap<RunId, u32>,
    /// What could not be read, a sentence each. The rest was.
    pub damaged: Vec<String>,
}

impl Archive {
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let mut archive = Self { days: Vec::new(), again: HashMap::new(), damaged: Vec::new() };
        for part in ArchiveDirectory::at(directory).parts()?.into_iter().rev() {
            match DayFile::open(&part.path).and_then(|file| file.again()) {
                Ok(again) => {
                    for (run, generation) in again {
                        let known = archive.again.entry(run).or_default();
                        *known = generation.max(*known);
                    }
                }
                // Whatever else is in it may still be read.
                Err(StoreError::Corrupt(why)) => archive.damaged.push(why),
                Err(error) => return Err(error),
            }
            match archive.days.last_mut() {
                Some((day, parts)) if *day == part.day => parts.push(part),
                Some(_) | None => archive.days.push((part.day, vec![part])),
            }
        }
        Ok(archive)
    }

    /// Hands over what is wanted, newest first, until told to stop. Of a run that stands in several files the newest generation
    /// counts, also when it is not wanted itself.
    pub fn runs(
        &mut self,
        wanted: &RunFilter,
        mut found: impl FnMut(RunRecord) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let days: Vec<(Day, Vec<DayPart>)> =
            self.days.iter().filter(|(day, _)| wanted.touches(*day)).cloned().collect();
        for (_, parts) in days {
            if self.day(&parts, wanted, &mut found)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn day(
        &mut self,
        parts: &[DayPart],
        wanted: &RunFilter,
        found: &mut dyn FnMut(RunRecord) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        // Newest part first.
        let mut files = Vec::new();
        for part in parts {
            match DayFile::open(&part.path) {
                Ok(file) => files.push(file),
                Err(StoreError::Corrupt(why)) => self.note(why),
                Err(error) => return Err(error),
            }
        }
        let mut cursors: Vec<_> = files.iter().map(DayFile::newest_first).collect();
        loop {
            let mut newest: Option<(i64, u64)> = None;
            for cursor in &mut cursors {
                newest = newest.max(self.peek(cursor)?);
            }
            let Some(newest) = newest else { return Ok(ControlFlow::Continue(())) };
            let mut record = None;
            for cursor in &mut cursors {
                if self.peek(cursor)? == Some(newest) {
                    let older = cursor.take();
                    record = record.or(older);
                }
            }
            if let Some(record) = record.filter(|record| wanted.holds(record))
                && self.again.get(&record.run).is_none_or(|newest| *newest <= record.generation)
                && found(record).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Damaged blocks are told of and passed over.
    fn peek(&mut self, cursor: &mut Runs<&DayFile>) -> Result<Option<(i64, u64)>, StoreError> {
        loop {
            match cursor.peek() {
                Ok(record) => return Ok(record.map(place)),
                Err(StoreError::Corrupt(why)) => self.note(why),
                Err(error) => return Err(error),
            }
        }
    }

    fn note(&mut self, why: String) {
        if !self.damaged.contains(&why) {
            self.damaged.push(why);
        }
    }

    /// A run's newest generation.
    pub fn run(&mut self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        let mut record = None;
        self.runs(&RunFilter { run: Some(run), ..RunFilter::default() }, |found| {
            record = Some(found);
            ControlFlow::Break(())
        })?;
        Ok(record)
    }

    /// What the attempts of a run said, in order.
    pub fn logs(&mut self, record: &RunRecord) -> Result<Vec<LogOf>, StoreError> {
        let day = Day::of_ms(place(record).0);
        let parts = self.days.iter().find(|(of, _)| *of == day).map_or(&[][..], |(_, parts)| parts);
        for part in parts {
            let logs = DayFile::open(&part.path)?.logs(record.run)?;
            if !logs.is_empty() {
                return Ok(logs);
            }
        }
        Ok(Vec::new())
    }
}
