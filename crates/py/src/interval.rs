//! The measurements of an interval as columns: one list per counter, one object per distribution, nothing per I/O.

use crate::histogram::Histogram;
use linerate_load::{LatencyKind, Op, PathRow, Row};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use std::sync::Arc;

/// The names for a run's indices.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) streams: Vec<String>,
    pub(crate) volumes: Vec<String>,
}

impl Names {
    fn stream(&self, index: u32) -> &str {
        self.streams.get(index as usize).map_or("", String::as_str)
    }

    fn volume(&self, index: u32) -> &str {
        self.volumes.get(index as usize).map_or("", String::as_str)
    }
}

/// The measurements of one interval; the summary of a run has the same shape over its measured time.
#[pyclass(frozen, module = "linerate._core")]
#[derive(Debug)]
pub(crate) struct Interval {
    measured: linerate_load::Interval,
    names: Arc<Names>,
}

impl Interval {
    pub(crate) fn new(measured: linerate_load::Interval, names: Arc<Names>) -> Self {
        Self { measured, names }
    }

    fn column<'py, T: IntoPyObject<'py>>(
        &self,
        py: Python<'py>,
        cell: impl Fn(&Row) -> T,
    ) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.measured.rows.iter().map(cell).collect::<Vec<_>>())
    }

    fn path_column<'py, 'a, T: IntoPyObject<'py>>(
        &'a self,
        py: Python<'py>,
        cell: impl Fn(&'a PathRow) -> T,
    ) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.measured.paths.iter().map(cell).collect::<Vec<_>>())
    }
}

fn op_word(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
    }
}

fn kind_word(kind: LatencyKind) -> &'static str {
    match kind {
        LatencyKind::Service => "service",
        LatencyKind::Response => "response",
    }
}

/// A distribution with its stream, volume, operation and kind.
type NamedHistogram = (String, String, &'static str, &'static str, Histogram);

#[pymethods]
impl Interval {
    /// Counts from 0, warm-up included.
    #[getter]
    fn index(&self) -> u32 {
        self.measured.index
    }

    /// Start, since the start of the run.
    #[getter]
    fn start_s(&self) -> f64 {
        self.measured.start_s
    }

    /// End, since the start of the run.
    #[getter]
    fn end_s(&self) -> f64 {
        self.measured.end_s
    }

    /// Belongs to the warm-up.
    #[getter]
    fn warmup(&self) -> bool {
        self.measured.warmup
    }

    /// Counters by (stream, volume, op), as columns of equal length.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        columns.set_item("stream", self.column(py, |row| self.names.stream(row.stream))?)?;
        columns.set_item("volume", self.column(py, |row| self.names.volume(row.volume))?)?;
        columns.set_item("op", self.column(py, |row| op_word(row.op))?)?;
        columns.set_item("ios", self.column(py, |row| row.ios)?)?;
        columns.set_item("bytes", self.column(py, |row| row.bytes)?)?;
        columns.set_item("errors", self.column(py, |row| row.errors)?)?;
        columns.set_item("service_sum_ns", self.column(py, |row| row.service_sum_ns)?)?;
        columns.set_item("service_sumsq_ns2", self.column(py, |row| row.service_sumsq_ns2)?)?;
        columns.set_item("service_max_ns", self.column(py, |row| row.service_max_ns)?)?;
        columns.set_item("response_sum_ns", self.column(py, |row| row.response_sum_ns)?)?;
        columns.set_item("response_max_ns", self.column(py, |row| row.response_max_ns)?)?;
        columns.set_item("flushes", self.column(py, |row| row.flushes)?)?;
        columns.set_item("flush_sum_ns", self.column(py, |row| row.flush_sum_ns)?)?;
        columns.set_item("flush_max_ns", self.column(py, |row| row.flush_max_ns)?)?;
        Ok(columns)
    }

    /// The traffic of each path of the volumes with several paths, as columns of equal length.
    #[getter]
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        columns.set_item("volume", self.path_column(py, |row| self.names.volume(row.volume))?)?;
        columns.set_item("path", self.path_column(py, |row| row.path.as_str())?)?;
        columns.set_item("state", self.path_column(py, |row| row.state)?)?;
        columns.set_item("read_ios", self.path_column(py, |row| row.read_ios)?)?;
        columns.set_item("write_ios", self.path_column(py, |row| row.write_ios)?)?;
        columns.set_item("read_bytes", self.path_column(py, |row| row.read_bytes)?)?;
        columns.set_item("write_bytes", self.path_column(py, |row| row.write_bytes)?)?;
        columns.set_item("service_sum_ns", self.path_column(py, |row| row.service_sum_ns)?)?;
        columns.set_item("service_max_ns", self.path_column(py, |row| row.service_max_ns)?)?;
        columns.set_item("requeued", self.path_column(py, |row| row.requeued)?)?;
        columns.set_item("retransmits", self.path_column(py, |row| row.retransmits)?)?;
        columns.set_item("bytes_sent", self.path_column(py, |row| row.bytes_sent)?)?;
        columns.set_item("bytes_received", self.path_column(py, |row| row.bytes_received)?)?;
        Ok(columns)
    }

    /// CPU of load and host, TCP of all sessions, and the delays of the generator.
    #[getter]
    fn usage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let usage = PyDict::new(py);
        let (host, tcp, generator) = (&self.measured.host, &self.measured.tcp, &self.measured.generator);
        usage.set_item("outstanding_mean", self.measured.outstanding_mean)?;
        usage.set_item("load_cpu_user_s", host.load_cpu_user_s)?;
        usage.set_item("load_cpu_system_s", host.load_cpu_system_s)?;
        usage.set_item("load_cpu_polled_s", host.load_cpu_polled_s)?;
        usage.set_item("host_cpu_user_s", host.host_cpu_user_s)?;
        usage.set_item("host_cpu_system_s", host.host_cpu_system_s)?;
        usage.set_item("host_cpu_idle_s", host.host_cpu_idle_s)?;
        usage.set_item("host_cpu_wait_s", host.host_cpu_wait_s)?;
        usage.set_item("tsc_hz", host.tsc_hz)?;
        usage.set_item("retransmits", tcp.retransmits)?;
        usage.set_item("data_segments_sent", tcp.data_segments_sent)?;
        usage.set_item("bytes_sent", tcp.bytes_sent)?;
        usage.set_item("bytes_received", tcp.bytes_received)?;
        usage.set_item("busy_us", tcp.busy_us)?;
        usage.set_item("rwnd_limited_us", tcp.rwnd_limited_us)?;
        usage.set_item("sndbuf_limited_us", tcp.sndbuf_limited_us)?;
        usage.set_item("rtt_us_mean", tcp.rtt_us_mean)?;
        usage.set_item("late_arrivals", generator.late_arrivals)?;
        usage.set_item("backlog_max", generator.backlog_max)?;
        Ok(usage)
    }

    /// Events, in order.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let convert = |event: &linerate_load::RunEvent| {
            let told = PyDict::new(py);
            told.set_item("at_s", event.at_s)?;
            told.set_item("kind", &event.kind)?;
            told.set_item("volume", &event.volume)?;
            told.set_item("path", &event.path)?;
            told.set_item("message", &event.message)?;
            told.set_item("blame", event.blame.word())?;
            Ok(told)
        };
        self.measured.events.iter().map(convert).collect()
    }

    /// Distributions as (stream, volume, op, kind, histogram); volume is empty for those of a whole stream, stream for
    /// those of a whole volume; kind is service or response.
    #[getter]
    fn latencies(&self) -> Vec<NamedHistogram> {
        let convert = |latency: &linerate_load::Latency| {
            let stream = latency.stream.map_or("", |index| self.names.stream(index)).to_owned();
            let volume = latency.volume.map_or("", |index| self.names.volume(index)).to_owned();
            (stream, volume, op_word(latency.op), kind_word(latency.kind), latency.histogram.clone().into())
        };
        self.measured.latencies.iter().map(convert).collect()
    }
}
