//! Opening and closing: one request after the other (MS-SMB2 3.2.4.2, 3.2.5.2 to 3.2.5.7). Each step's answer leads to
//! the next step; `steps.rs` has the table.

use super::incoming::CONTROL_BYTES_MAX;
use super::parts::IoPart;
use super::steps::{ChannelBinding, SmbStep};
use super::{FileContext, FileLoss, GoalProgress, RemoteFile, SmbFileState, SmbGoal};
use crate::auth::Logon;
use crate::crypto::keys::SessionKeys;
use crate::event::SmbSink;
use crate::options::{EncryptionChoice, SigningChoice};
use crate::wire::files;
use crate::wire::header::{MessageHeader, RELATED_FILE, SmbCommand};
use crate::wire::logon::{LogonGoal, SessionSetup, Tree, session_setup, tree_connect};
use crate::wire::negotiate::{Dialect, Negotiated};
use crate::wire::status::Status;
use crate::wire::validation;
use linerate_io::{Driver, Nanos};

impl RemoteFile {
    /// Starts a further channel of the session of an open file.
    pub(crate) fn bind<D: Driver>(driver: &mut D, leader: &mut Self) -> Result<Self, FileLoss> {
        let binding = leader.new_binding()?;
        let (options, credentials) = (&leader.options, leader.credentials.clone());
        let goal = SmbGoal::File(leader.mode);
        let mut channel =
            Self::connect(driver, leader.id, &leader.address, options, credentials, goal, leader.peer)?;
        channel.opening.offer.client_guid = binding.client_guid;
        channel.opening.offer.dialects = vec![binding.dialect];
        channel.size_bytes = leader.size_bytes;
        channel.replays.sequence = leader.replays.sequence;
        channel.binding = Some(binding);
        Ok(channel)
    }

    fn new_binding(&mut self) -> Result<ChannelBinding, FileLoss> {
        let chosen = self.negotiated.as_ref().filter(|chosen| chosen.multi_channel);
        let none = "the server supports no several channels; permit them there, or leave smb.channels out";
        let dialect = chosen.ok_or_else(|| FileLoss::Options(none.to_owned()))?.dialect;
        let guest = "a guest's session has only one channel; name a user that the server knows, or leave \
                     smb.channels out";
        let keys = self.session_keys.clone().filter(|_| !self.is_guest);
        let keys = keys.ok_or_else(|| FileLoss::Options(guest.to_owned()))?;
        self.channels_bound += 1;
        Ok(ChannelBinding {
            session_id: self.session_id,
            keys,
            dialect,
            client_guid: self.opening.offer.client_guid,
            tree_id: self.tree_id,
            file_id: self.file_id,
            seals: self.protection.seals,
            number: self.channels_bound,
        })
    }

    /// Becomes the first channel of its session in place of one that was lost.
    pub(crate) fn take_over(&mut self, leader: &mut Self) {
        self.binding = None;
        self.channels_bound = leader.channels_bound;
        self.durable = std::mem::take(&mut leader.durable);
        self.previous_session_id = leader.previous_session_id;
        self.size_bytes = leader.size_bytes;
    }

    pub(super) fn send_negotiate(&mut self, now: Nanos) -> Result<(), FileLoss> {
        self.step = SmbStep::Negotiating;
        self.send_control(SmbCommand::Negotiate, now, |file, header| file.opening.offer.request(&header))
    }

    /// With a FLUSH that leaves before it, in one message if there are credits for both.
    pub(super) fn send_close(&mut self, flush: Option<IoPart>, now: Nanos) -> Result<(), FileLoss> {
        if matches!(self.goal, GoalProgress::Tree(_)) {
            return self.send_logoff(now);
        }
        self.step = SmbStep::Closing;
        if let Some(part) = flush {
            self.send_flush(part, now)?;
            if self.relate(SmbCommand::Close, now, |header| files::close_or_flush(header, RELATED_FILE)) {
                return Ok(());
            }
        }
        self.send_control(SmbCommand::Close, now, |file, header| files::close_or_flush(&header, file.file_id))
    }

    fn send_logoff(&mut self, now: Nanos) -> Result<(), FileLoss> {
        self.step = SmbStep::LoggingOff;
        self.send_control(SmbCommand::Logoff, now, |_, header| files::empty(&header))
    }

    /// The answer to the step's request. `message` is whole, and its signature is right if it has one.
    pub(super) fn step_answered<S: SmbSink>(
        &mut self,
        message: &[u8],
        cx: &mut FileContext<'_, S>,
    ) -> Result<(), FileLoss> {
        let header = MessageHeader::parse(message)?;
        let (status, now) = (header.status(), cx.now);
        if !self.step.command().is_some_and(|command| header.is(command)) {
            return Err(FileLoss::Protocol("an answer before that of an earlier request"));
        }
        match self.step {
            SmbStep::Negotiating => self.negotiated(message, status, now),
            SmbStep::Challenged => self.challenged(message, header, now),
            SmbStep::LoggingOn => self.logged_on(message, header, now),
            SmbStep::TreeConnecting => self.tree_connected(message, status, now),
            SmbStep::Validating => self.validated(message, header, now),
            SmbStep::Creating => self.created(message, status, now),
            SmbStep::Extending if status == Status::SUCCESS => self.await_size(now),
            SmbStep::Sizing if status == Status::SUCCESS => {
                self.size_bytes = files::queried_size(message)?;
                self.open();
                Ok(())
            }
            SmbStep::CreatingPipe => self.pipe_created(message, status, now),
            SmbStep::Binding => self.pipe_bound(message, status, now),
            SmbStep::Listing | SmbStep::Fetching => self.pipe_answered(message, status, now),
            SmbStep::Extending | SmbStep::Sizing => Err(FileLoss::size(status, &self.address.path)),
            SmbStep::Closing => self.send_logoff(now),
            SmbStep::LoggingOff => Err(FileLoss::Closed),
            SmbStep::Connecting | SmbStep::Open => {
                Err(FileLoss::Protocol("an answer to a request that was not sent"))
            }
        }
    }

    fn negotiated(&mut self, message: &[u8], status: Status, now: Nanos) -> Result<(), FileLoss> {
        if status != Status::SUCCESS {
            return Err(FileLoss::negotiate(status, self.options.dialect.map(Dialect::name)));
        }
        let chosen = Negotiated::parse(message, &self.opening.offer)?;
        let options = |words: &str| Err(FileLoss::Options(words.to_owned()));
        if chosen.signing_required && self.options.signing == SigningChoice::Off {
            return options("the server requires signatures; set smb.signing to on or auto");
        }
        if chosen.cipher.is_none() && self.options.encryption.is_required() {
            return options(
                "the server does not support this encryption; choose another with smb.encryption",
            );
        }
        self.negotiated = Some(chosen);
        if let Some(binding) = &self.binding {
            self.session_id = binding.session_id;
            self.protection.set_keys(binding.session_id, &chosen, &binding.keys, binding.number);
        }
        self.opening.preauth.add(message);
        self.credits.set_multi(chosen.multi_credit);
        let most_bytes = self.credits.most_bytes(chosen.max_read_bytes.min(chosen.max_write_bytes));
        self.max_io_bytes = self.options.max_io_bytes.map_or(most_bytes, |asked| asked.min(most_bytes));
        if self.max_io_bytes == 0 {
            return Err(FileLoss::Protocol("it permits no READ or no WRITE"));
        }
        self.step = SmbStep::Challenged;
        let token = Logon::start();
        self.send_session_setup(&token, now)
    }

    fn send_session_setup(&mut self, token: &[u8], now: Nanos) -> Result<(), FileLoss> {
        let mode = self.opening.offer.security_mode();
        self.send_control(SmbCommand::SessionSetup, now, |file, header| {
            let session = LogonGoal::Session { previous: file.previous_session_id };
            let goal = if file.binding.is_some() { LogonGoal::Channel } else { session };
            session_setup(&header, mode, token, goal)
        })
    }

    fn challenged(&mut self, message: &[u8], header: &MessageHeader, now: Nanos) -> Result<(), FileLoss> {
        if header.status() != Status::MORE_PROCESSING_REQUIRED {
            return Err(self.refused_logon(header.status()));
        }
        self.opening.preauth.add(message);
        self.session_id = header.session_id.get();
        let answer = self.opening.logon.answer(SessionSetup::parse(message)?.token)?;
        self.step = SmbStep::LoggingOn;
        self.send_session_setup(&answer.token, now)?;
        let chosen = self.negotiated.as_ref().ok_or(FileLoss::Protocol("a logon before the negotiation"))?;
        let own =
            SessionKeys::derive(chosen.dialect, chosen.cipher, &answer.session_key, &self.opening.preauth);
        // A channel has a key of its own for signatures only.
        let (session, number) = match &self.binding {
            Some(binding) => (binding.keys.clone(), binding.number),
            None => (own.clone(), 0),
        };
        let keys = SessionKeys { signing: own.signing, ..session.clone() };
        self.protection.set_keys(self.session_id, chosen, &keys, number);
        self.session_keys = Some(session);
        Ok(())
    }

    fn refused_logon(&self, status: Status) -> FileLoss {
        let can_seal = self.negotiated.as_ref().is_some_and(|chosen| chosen.cipher.is_some());
        if self.binding.is_some() {
            FileLoss::channel(status, &self.user, can_seal)
        } else {
            FileLoss::logon(status, &self.user, can_seal)
        }
    }

    fn logged_on(&mut self, message: &[u8], header: &MessageHeader, now: Nanos) -> Result<(), FileLoss> {
        if header.status() != Status::SUCCESS {
            return Err(self.refused_logon(header.status()));
        }
        let setup = SessionSetup::parse(message)?;
        self.previous_session_id = self.session_id;
        let chosen = self.negotiated.as_ref().ok_or(FileLoss::Protocol("a logon before the negotiation"))?;
        let (sign, seal) = (self.options.signing, self.options.encryption);
        if let Some(binding) = &self.binding {
            if setup.is_guest || !header.is_signed() {
                return Err(FileLoss::Protocol("it did not sign the end of a channel's logon"));
            }
            self.protection.signs = sign == SigningChoice::On || chosen.signing_required;
            self.protection.seals = binding.seals;
            self.tree_id = binding.tree_id;
            return self.send_validate_or_create(now);
        }
        if setup.is_guest {
            if sign == SigningChoice::On || seal.is_required() || chosen.signing_required {
                let words = "the server logged the user in as a guest, whose messages cannot be protected; \
                     name a user that it knows";
                return Err(FileLoss::Options(words.to_owned()));
            }
            self.is_guest = true;
            self.protection.forget_keys();
        } else {
            // A changed negotiation would show here: the keys depend on all of its messages.
            if chosen.dialect == Dialect::Smb311 && !header.is_signed() {
                return Err(FileLoss::Protocol("it did not sign the end of the logon"));
            }
            self.protection.signs = sign == SigningChoice::On || chosen.signing_required;
            if setup.encrypt || seal.is_required() {
                self.start_sealing("the server")?;
            }
        }
        self.step = SmbStep::TreeConnecting;
        self.send_control(SmbCommand::TreeConnect, now, |file, header| {
            tree_connect(&header, &file.address.host, &file.address.share)
        })
    }

    fn start_sealing(&mut self, whose: &str) -> Result<(), FileLoss> {
        if self.protection.can_seal() {
            self.protection.seals = true;
            return Ok(());
        }
        let words = if self.options.encryption == EncryptionChoice::Off {
            format!("{whose} requires encryption; set smb.encryption to on or auto")
        } else {
            format!(
                "{whose} requires encryption, which the negotiated dialect or the guest's session does not have"
            )
        };
        Err(FileLoss::Options(words))
    }

    fn tree_connected(&mut self, message: &[u8], status: Status, now: Nanos) -> Result<(), FileLoss> {
        if status != Status::SUCCESS {
            let was_open = self.recovery.is_some();
            return Err(FileLoss::tree(
                status,
                &self.address.share,
                &self.user,
                was_open,
                self.protection.can_seal(),
            ));
        }
        let tree = Tree::parse(message)?;
        if !tree.is_disk && !matches!(self.goal, GoalProgress::Shares(_)) {
            let words = format!("share {} has no files; it is a printer or a pipe", self.address.share);
            return Err(FileLoss::Options(words));
        }
        if self.open_mode().write && !tree.can_write {
            let place = if self.address.path.is_empty() { &self.address.share } else { &self.address.path };
            return Err(FileLoss::create(Status::ACCESS_DENIED, place, &self.user, true));
        }
        if tree.encrypt {
            self.start_sealing("the share")?;
        }
        self.tree_id = tree.id;
        self.send_validate_or_create(now)
    }

    fn send_validate_or_create(&mut self, now: Nanos) -> Result<(), FileLoss> {
        // The keys of 3.1.1 depend on the whole negotiation. A guest has no keys to protect it with.
        let chosen = self.negotiated.as_ref().map(|chosen| chosen.dialect);
        if chosen < Some(Dialect::Smb311) && self.protection.has_keys() {
            self.step = SmbStep::Validating;
            return self.send_control(SmbCommand::Ioctl, now, |file, header| {
                validation::validate(&header, &file.opening.offer)
            });
        }
        self.send_create(now)
    }

    /// MS-SMB2 3.2.5.14.12. A server that knows no validation says so, signed.
    fn validated(&mut self, message: &[u8], header: &MessageHeader, now: Nanos) -> Result<(), FileLoss> {
        const UNKNOWN: [Status; 3] =
            [Status::FILE_CLOSED, Status::INVALID_DEVICE_REQUEST, Status::NOT_SUPPORTED];
        let chosen = self.negotiated.as_ref().ok_or(FileLoss::Protocol("a logon before the negotiation"))?;
        let status = header.status();
        if !header.is_signed() && !self.protection.seals {
            return Err(FileLoss::Protocol("it did not sign its validation of the negotiation"));
        }
        let is_right =
            UNKNOWN.contains(&status) || status == Status::SUCCESS && validation::is_valid(message, chosen)?;
        if !is_right {
            return Err(FileLoss::Protocol("the negotiation was changed on its way"));
        }
        self.send_create(now)
    }

    fn send_create(&mut self, now: Nanos) -> Result<(), FileLoss> {
        match self.goal {
            GoalProgress::Shares(_) => return self.send_create_pipe(now),
            GoalProgress::Tree(_) => {
                self.open();
                return Ok(());
            }
            GoalProgress::File => {}
        }
        if let Some(binding) = &self.binding {
            self.file_id = binding.file_id;
            self.open();
            return Ok(());
        }
        self.step = SmbStep::Creating;
        let durable = self.durable_context();
        self.send_control(SmbCommand::Create, now, |file, header| {
            files::create(&header, &file.address.path, file.open_mode(), durable)
        })?;
        if self.durable.is_reclaim && self.begins_with_query() {
            self.relate(SmbCommand::QueryInfo, now, |header| files::query_size(header, RELATED_FILE));
        }
        Ok(())
    }

    fn created(&mut self, message: &[u8], status: Status, now: Nanos) -> Result<(), FileLoss> {
        if status != Status::SUCCESS && self.is_refused_reclaim() {
            self.drop_related();
            return self.send_create(now);
        }
        if status != Status::SUCCESS {
            let mode = self.open_mode();
            return Err(FileLoss::create(status, &self.address.path, &self.user, mode.write));
        }
        (self.file_id, self.size_bytes) = files::opened(message)?;
        self.note_durable(message)?;
        match self.mode.create_bytes {
            Some(wanted) if self.size_bytes < wanted && self.recovery.is_none() => {
                self.step = SmbStep::Extending;
                self.send_control(SmbCommand::SetInfo, now, |file, header| {
                    files::set_size(&header, file.file_id, wanted)
                })?;
                self.relate(SmbCommand::QueryInfo, now, |header| files::query_size(header, RELATED_FILE));
                Ok(())
            }
            _ if self.durable.is_same && self.begins_with_query() => self.await_size(now),
            _ => {
                self.open();
                Ok(())
            }
        }
    }

    /// The size is asked for with the request before, or now.
    fn await_size(&mut self, now: Nanos) -> Result<(), FileLoss> {
        self.step = SmbStep::Sizing;
        if self.related.take().is_some() {
            return Ok(());
        }
        self.send_control(SmbCommand::QueryInfo, now, |file, header| files::query_size(&header, file.file_id))
    }

    pub(super) fn open(&mut self) {
        self.step = SmbStep::Open;
        self.state = SmbFileState::Ready;
        self.reader.set_length_max(self.max_io_bytes + CONTROL_BYTES_MAX);
    }
}
