//! Reports that the coordinator has not acknowledged yet.

use std::collections::VecDeque;

use exact2048_coordinator::cluster::WorkerReport;
use metrics::gauge;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::observe;

/// Reports, numbered in the order in which they were made. Any thread may report.
#[derive(Debug, Default)]
pub struct Outbox {
    reports: Mutex<Reports>,
    /// Notified when a report should not wait for the next pull.
    urgent: Notify,
}

#[derive(Debug, Default)]
struct Reports {
    /// Number of the first report in `waiting`.
    first: u64,
    waiting: VecDeque<WorkerReport>,
}

impl Reports {
    fn measure(&self) {
        gauge!(observe::REPORTS_WAITING).set(self.waiting.len() as f64);
    }
}

impl Outbox {
    /// Adds a report, to be sent with the next pull.
    pub fn report(&self, report: WorkerReport) {
        let mut reports = self.reports.lock();
        reports.waiting.push_back(report);
        reports.measure();
    }

    /// Adds a report, to be sent at once.
    pub fn report_now(&self, report: WorkerReport) {
        self.report(report);
        self.urgent.notify_one();
    }

    /// Waits for a report that must be sent at once.
    pub async fn urgent(&self) {
        self.urgent.notified().await;
    }

    /// Returns the number of the first unacknowledged report, and all unacknowledged reports.
    pub fn pending(&self) -> (u64, Vec<WorkerReport>) {
        let reports = self.reports.lock();
        (reports.first, reports.waiting.iter().cloned().collect())
    }

    /// Drops the acknowledged reports, whose numbers are below `number`.
    pub fn acknowledged(&self, number: u64) {
        let mut reports = self.reports.lock();
        while reports.first < number && reports.waiting.pop_front().is_some() {
            reports.first += 1;
        }
        reports.measure();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_stay_until_they_are_acknowledged() {
        let outbox = Outbox::default();
        (0..3).for_each(|_| outbox.report(WorkerReport::Well));
        assert_eq!(outbox.pending(), (0, vec![WorkerReport::Well; 3]));
        outbox.acknowledged(2);
        outbox.acknowledged(1);
        assert_eq!(outbox.pending(), (2, vec![WorkerReport::Well]));
        outbox.acknowledged(9);
        outbox.report(WorkerReport::Well);
        assert_eq!(outbox.pending(), (3, vec![WorkerReport::Well]));
    }
}
