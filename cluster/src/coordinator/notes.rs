//! Writes the ends and the progress of jobs to the queue, so the next coordinator need not open their runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use exact2048_coordinator::cluster::{JobId, JobSummary};
use tokio::sync::mpsc::UnboundedReceiver;
use tonic::Status;

use super::ledger::Ledger;
use super::queue_records::{JobOutcome, QueueRecord};

/// Pause before a failed write to the queue is repeated.
const NOTE_AGAIN: Duration = Duration::from_secs(1);

/// Writes the ends and progress of jobs until the coordinator stops, and retries failed writes. At the end, writes the
/// progress that is not written yet.
pub(super) async fn note_jobs(ledger: Ledger, mut news: UnboundedReceiver<JobId>) {
    let driver = &ledger.driver;
    let (mut waiting, mut written) = (BTreeSet::new(), BTreeMap::new());
    loop {
        let next = if waiting.is_empty() {
            driver.stop.run_until_cancelled(news.recv()).await
        } else {
            let soon = tokio::time::sleep(NOTE_AGAIN);
            tokio::select! {
                next = news.recv() => Some(next),
                () = soon => Some(waiting.first().cloned()),
                () = driver.stop.cancelled() => None,
            }
        };
        let Some(Some(job)) = next else { break };
        waiting.insert(job.clone());
        match note_job(&ledger, &job).await {
            Ok(progress) => {
                waiting.remove(&job);
                written.remove(&job);
                written.extend(progress.map(|progress| (job, progress)));
            }
            Err(status) => tracing::warn!(%job, error = status.message(), "cannot write the queue"),
        }
    }
    for (job, before) in written {
        let now = driver.with(|state, _| state.cluster.job_summary(&job).cloned());
        if driver.fenced.get().is_none()
            && now.is_some_and(|now| now != before)
            && let Err(status) = note_job(&ledger, &job).await
        {
            tracing::warn!(%job, error = status.message(), "cannot write the last progress of a job to the queue");
        }
    }
}

/// Writes the end of a job to the queue, or its progress. Returns the progress.
async fn note_job(ledger: &Ledger, job: &JobId) -> Result<Option<JobSummary>, Status> {
    let _turn = ledger.turn().await;
    let found = ledger.driver.with(|state, _| {
        let outcome = JobOutcome::of(state.cluster.job_state(job)?);
        Some((outcome, state.cluster.job_summary(job)?.clone()))
    });
    // The job may have been forgotten in the meantime.
    let Some((outcome, summary)) = found else { return Ok(None) };
    let job = job.clone();
    if let Some(outcome) = outcome {
        ledger.note(QueueRecord::Ended { job, outcome, summary }).await?;
        return Ok(None);
    }
    ledger.note(QueueRecord::Progress { job, summary: summary.clone() }).await?;
    Ok(Some(summary))
}
