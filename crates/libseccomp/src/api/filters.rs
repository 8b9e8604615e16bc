//! Filters and their attributes, transactions, and the state of the library.

use std::ffi::{c_int, c_uint};
use std::ptr;

use tamis_scmp::Release;

use crate::api::{any_filter, code, filter, guarded, native};
use crate::attributes::Attribute;
use crate::contexts::{self, Handle};
use crate::filter::Filter;
use crate::load;
use crate::memory;
use crate::next;
use crate::status::Status;
use crate::support;

/// `struct scmp_version`
#[repr(C)]
#[derive(Debug)]
pub(super) struct Version {
    major: c_uint,
    minor: c_uint,
    micro: c_uint,
}

impl Version {
    const fn from_release(release: Release) -> Version {
        let [major, minor, micro] = release.version();
        Version {
            major,
            minor,
            micro,
        }
    }
}

/// The version of each release.
static REFERENCE: Version = Version::from_release(Release::Reference);
static NEXT: Version = Version::from_release(Release::Next);

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_version() -> *const Version {
    match next::release() {
        Release::Reference => &raw const REFERENCE,
        Release::Next => &raw const NEXT,
    }
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_api_get() -> c_uint {
    support::level()
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_api_set(level: c_uint) -> c_int {
    code(|| match support::set_level(level) {
        true => Ok(()),
        false => Err(Status::Invalid),
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_init(default: u32) -> Handle {
    guarded(ptr::null_mut(), || {
        support::level();
        new(default).map_or(ptr::null_mut(), contexts::add)
    })
}

fn new(default: u32) -> Result<Filter, Status> {
    let default = support::action(default).ok_or(Status::Invalid)?;
    memory::require(0)?;
    Ok(Filter::new(default, native()?))
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_reset(handle: Handle, default: u32) -> c_int {
    code(|| {
        if handle.is_null() {
            load::reset();
            support::reset();
            return Ok(());
        }
        let reset = new(default)?;
        // SAFETY: the caller uses the handle in one thread at a time.
        *unsafe { any_filter(handle) }? = reset;
        Ok(())
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_release(handle: Handle) {
    guarded((), || drop(contexts::take(handle)));
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_merge(into: Handle, from: Handle) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handles in one thread at a time.
        let target = unsafe { filter(into) }?;
        if into == from {
            return Err(Status::Exists);
        }
        // SAFETY: as above; it isn't the same filter.
        target.check_merge(unsafe { filter(from) }?)?;
        target.merge(contexts::take(from).ok_or(Status::Fault)?)
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_attr_get(handle: Handle, number: c_uint, value: *mut u32) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handle in one thread at a time.
        let filter = unsafe { filter(handle) }?;
        let attribute = Attribute::from_number(number).ok_or(Status::Invalid)?;
        if value.is_null() {
            return Err(Status::Invalid);
        }
        // SAFETY: it isn't null, and the interface demands a place for the value.
        unsafe { *value = filter.attribute(attribute) };
        Ok(())
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_attr_set(handle: Handle, number: c_uint, value: u32) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handle in one thread at a time.
        let filter = unsafe { filter(handle) }?;
        let attribute = Attribute::from_number(number).ok_or(Status::Invalid)?;
        filter.set_attribute(attribute, value)
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_transaction_start(handle: Handle) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handle in one thread at a time.
        let filter = unsafe { filter(handle) }?;
        filter.start_transaction()
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_transaction_commit(handle: Handle) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handle in one thread at a time.
        let filter = unsafe { filter(handle) }?;
        filter.commit_transaction();
        Ok(())
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_transaction_reject(handle: Handle) {
    guarded((), || {
        // SAFETY: the caller uses the handle in one thread at a time.
        if let Ok(filter) = unsafe { filter(handle) } {
            filter.reject_transaction();
        }
    });
}
