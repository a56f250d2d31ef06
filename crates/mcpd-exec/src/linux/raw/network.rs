//! Network namespace of a child: its loopback interface, and the socket of the proxy in it, which
//! the child opens and hands to this process. Its functions that take a plan are for a child made
//! by [`spawn`](super::spawn()) alone.

use std::io::{self, IoSliceMut};
use std::mem::{MaybeUninit, offset_of, zeroed};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use libc::{c_int, c_long, c_void};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::child::{FailedStep, try_step};
use super::mount::perform_steps;
use super::plan::{NetworkPlan, SetupStage};

/// Connections that may wait to be accepted.
const BACKLOG: c_int = 128;

/// Control message with one descriptor.
#[repr(C)]
struct DescriptorMessage {
    header: libc::cmsghdr,
    descriptor: c_int,
    /// The kernel aligns messages to 8 bytes.
    _padding: c_int,
}

const DESCRIPTOR_LENGTH: usize = offset_of!(DescriptorMessage, descriptor) + size_of::<c_int>();

/// Brings up the loopback interface, opens the socket of the proxy, and hands it over.
pub(super) unsafe fn open_network(plan: &NetworkPlan<'_>) -> Result<(), FailedStep> {
    // SAFETY: this is the child, and all pointers are to live values of its stack.
    unsafe {
        perform_steps(plan.steps, None, SetupStage::Network)?;
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        let socket = step(|| c_long::from(libc::socket(libc::AF_INET, kind, 0)))? as c_int;
        let mut interface: libc::ifreq = zeroed();
        for (to, from) in interface.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
            *to = *from as libc::c_char;
        }
        interface.ifr_ifru.ifru_flags = libc::IFF_UP as i16;
        step(|| {
            c_long::from(libc::ioctl(
                socket,
                libc::SIOCSIFFLAGS as _,
                &raw mut interface,
            ))
        })?;
        let mut address: libc::sockaddr_in = zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = plan.port.to_be();
        address.sin_addr.s_addr = libc::INADDR_LOOPBACK.to_be();
        let (pointer, size) = (&raw const address, size_of_val(&address));
        step(|| c_long::from(libc::bind(socket, pointer.cast(), size as libc::socklen_t)))?;
        step(|| c_long::from(libc::listen(socket, BACKLOG)))?;
        send_descriptor(plan.channel, socket)
    }
}

fn step(call: impl FnOnce() -> c_long) -> Result<c_long, FailedStep> {
    try_step(SetupStage::Network, call)
}

unsafe fn send_descriptor(channel: BorrowedFd<'_>, descriptor: c_int) -> Result<(), FailedStep> {
    let mut byte = 0_u8;
    let mut part = libc::iovec {
        iov_base: (&raw mut byte).cast::<c_void>(),
        iov_len: 1,
    };
    // SAFETY: both consist of numbers and pointers, which may be null.
    let (mut message, mut control) =
        unsafe { (zeroed::<libc::msghdr>(), zeroed::<DescriptorMessage>()) };
    control.header.cmsg_len = DESCRIPTOR_LENGTH as _;
    control.header.cmsg_level = libc::SOL_SOCKET;
    control.header.cmsg_type = libc::SCM_RIGHTS;
    control.descriptor = descriptor;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message points to live values.
    step(|| unsafe {
        libc::sendmsg(channel.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) as c_long
    })
    .map(drop)
}

/// Takes the descriptor that a child has sent.
///
/// # Errors
///
/// None has arrived, or this process can't have another descriptor.
pub(crate) fn receive_descriptor(channel: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(
        channel,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags,
    )?;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| io::Error::other("the child has sent no socket"))
}
