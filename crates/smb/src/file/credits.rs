//! Credits (MS-SMB2 3.2.4.1.2): the window of a connection. Each request costs one credit per 64 KiB that it moves, and
//! takes as many numbers. The server grants credits with its responses.

/// Bytes that one credit pays.
const CREDIT_BYTES: u32 = 64 * 1024;
/// The longest I/O: the limit of Windows and Samba. Its message, also encrypted, is shorter than the prefix can announce.
const IO_BYTES_MAX: u32 = 8 << 20;
/// Credits that the client asks for: the limit of Windows and Samba.
const WANTED: u32 = 8192;

/// The credits of a connection, and the number of its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credits {
    available: u32,
    /// Credits of requests in flight.
    spent: u32,
    next_message_id: u64,
    /// Requests may cost several credits.
    multi: bool,
}

/// A request's number and what it pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) message_id: u64,
    /// Credits that were taken.
    pub(super) charge: u16,
    /// `CreditCharge` in the header.
    pub(super) charge_field: u16,
    /// `CreditRequest` in the header.
    pub(super) request: u16,
}

impl Credits {
    /// A new connection has one credit (MS-SMB2 3.2.4.1.2).
    pub(super) fn new() -> Self {
        Self { available: 1, spent: 0, next_message_id: 0, multi: false }
    }

    /// What was negotiated about requests of several credits.
    pub(super) fn set_multi(&mut self, multi: bool) {
        self.multi = multi;
    }

    /// The longest I/O.
    pub(super) fn most_bytes(self, server_most_bytes: u32) -> u32 {
        server_most_bytes.min(if self.multi { IO_BYTES_MAX } else { CREDIT_BYTES })
    }

    /// What a request costs that moves `len` bytes.
    #[inline]
    pub(super) fn charge_of(self, len: u32) -> u16 {
        if self.multi { len.div_ceil(CREDIT_BYTES).max(1) as u16 } else { 1 }
    }

    /// Takes the credits of a request; None: there are too few.
    #[inline]
    pub(super) fn take(&mut self, charge: u16) -> Option<Ticket> {
        let cost = u32::from(charge);
        self.available = self.available.checked_sub(cost)?;
        let message_id = self.next_message_id;
        self.next_message_id += u64::from(charge);
        let wanted = WANTED.saturating_sub(self.available + self.spent).max(1);
        self.spent += cost;
        let charge_field = if self.multi { charge } else { 0 };
        Some(Ticket { message_id, charge, charge_field, request: wanted.min(u16::MAX.into()) as u16 })
    }

    /// Whether there is a credit for a short request.
    #[inline]
    pub(super) fn has_any(self) -> bool {
        self.available > 0
    }

    /// A response grants credits.
    #[inline]
    pub(super) fn grant(&mut self, granted: u16) {
        // More than the client asked for has no use, and more numbers than the table of tasks has would collide.
        self.available = (self.available + u32::from(granted)).min(WANTED.saturating_sub(self.spent));
    }

    /// A request has its last response.
    #[inline]
    pub(super) fn end(&mut self, charge: u16) {
        self.spent -= u32::from(charge);
    }

    /// Credits in hand and in flight.
    pub(super) fn total(self) -> u32 {
        self.available + self.spent
    }

    /// The number of the next request.
    #[inline]
    pub(super) fn next_message_id(self) -> u64 {
        self.next_message_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_pays_per_64_kib_and_takes_as_many_numbers() {
        let mut credits = Credits::new();
        assert_eq!(credits.charge_of(1 << 20), 1);
        credits.set_multi(true);
        let lens = [0, 1, 65536, 65537, 1 << 20];
        assert_eq!(lens.map(|len| credits.charge_of(len)), [1, 1, 1, 2, 16]);
        assert!(credits.take(2).is_none());
        let first = credits.take(1).unwrap();
        assert_eq!((first.message_id, first.request), (0, 8192));
        assert!(credits.take(1).is_none());
        credits.grant(20);
        credits.end(first.charge);
        assert_eq!(credits.take(16).unwrap().message_id, 1);
        assert_eq!(credits.take(1).unwrap().message_id, 17);
    }

    #[test]
    fn a_server_that_grants_without_end_changes_nothing() {
        let mut credits = Credits::new();
        (0..1000).for_each(|_| credits.grant(u16::MAX));
        assert_eq!(credits.total(), WANTED);
    }
}
