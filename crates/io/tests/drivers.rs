//! One test body for every driver: epoll and `io_uring` must both fulfil the contract of the trait.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

mod suite;

use linerate_io::{AnyDriver, Preference, open_driver, with_driver};

/// Runs one test of the suite on one driver, or prints why it cannot.
macro_rules! on {
    ($preference:expr, $test:ident) => {
        match open_driver($preference) {
            Ok(driver) => with_driver!(driver, |driver| suite::$test(suite::Bench::new(driver))),
            Err(error) => eprintln!("skipped: {error}"),
        }
    };
}

macro_rules! suite {
    ($($test:ident),+ $(,)?) => {
        mod epoll {
            $(#[test] fn $test() { super::on!(super::Preference::Epoll, $test) })+
            use super::*;
        }
        mod io_uring {
            $(#[test] fn $test() { super::on!(super::Preference::IoUring, $test) })+
            use super::*;
        }
    };
}
use on;

suite! {
    echoes_over_ipv4_and_ipv6,
    receives_into_segments_first,
    a_retracted_receive_fills_its_buffer_only,
    sends_from_regions_and_resumes_short_sends,
    short_lists_fill_a_socket_and_keep_their_order,
    a_long_send_goes_with_the_next_poll_whatever_that_brings,
    an_end_after_data_is_seen,
    data_and_end_that_came_together_are_both_seen,
    a_flood_of_connections_comes_in_handfuls,
    refused_connections_say_so,
    closing_gives_buffers_back,
    closing_a_connecting_stream_ends_it,
    a_stale_handle_is_an_error,
    a_segment_outside_its_region_is_an_error,
    waits_until_the_deadline,
    a_nearer_deadline_counts_and_an_old_one_disturbs_once,
    a_wake_from_another_thread_ends_the_wait,
    many_streams_make_progress_together,
    a_receive_ends_with_a_buffer_as_long_as_its_own,
    a_busy_stream_does_not_starve_another,
    sockets_move_between_drivers,
    socket_options_are_applied,
    files_keep_what_is_written,
    reads_end_at_the_end_of_the_file,
    discarded_bytes_read_as_zeros,
    allocated_files_keep_their_space_and_their_bytes,
    file_errors_come_back_with_their_tag,
    a_closed_file_finishes_its_operations,
    durable_writes_in_flight_together_all_complete,
    many_file_operations_at_once,
    a_taken_port_is_an_error,
    dropping_the_driver_ends_what_is_in_flight,
}

#[test]
fn auto_always_opens_something() {
    let driver = open_driver(Preference::Auto).unwrap();
    let name = with_driver!(driver, |driver| linerate_io::Driver::name(&driver));
    assert!(["epoll", "io_uring"].contains(&name));
    assert!(matches!(open_driver(Preference::Epoll).unwrap(), AnyDriver::Epoll(_)));
}

#[test]
fn preferences_are_read_by_name() {
    assert_eq!("io_uring".parse::<Preference>().unwrap(), Preference::IoUring);
    let error = "kqueue".parse::<Preference>().unwrap_err().to_string();
    assert!(error.contains("\"kqueue\"") && error.contains("\"auto\""), "{error}");
}
