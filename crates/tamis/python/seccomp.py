"""seccomp filters by libseccomp's functions, compiled and proved by tamis.

The names are those of libseccomp's own Python module, so that programs that import `seccomp` need no change:

    from seccomp import ALLOW, EQ, ERRNO, Arg, SyscallFilter

    rules = SyscallFilter(ALLOW)
    rules.add_rule(ERRNO(1), "socket", Arg(0, EQ, 16))
    rules.load()

Actions are ALLOW, LOG, TRAP, KILL, KILL_PROCESS, NOTIFY, ERRNO(number) and TRACE(number). What libseccomp refuses is
a RuntimeError with its negative error number; wrong types and values are TypeError, ValueError or OverflowError.

The library is the file `libseccomp.so.2` in the folder above this module's, or else the one that the dynamic linker
finds. Nothing has to be compiled. Calls into the library release the interpreter's lock, so a thread may wait for
notifications while others run.
"""

import ctypes as _ctypes
import errno
import os as _os

KILL_PROCESS = -0x80000000
KILL = 0
TRAP = 0x00030000
NOTIFY = 0x7FC00000
LOG = 0x7FFC0000
ALLOW = 0x7FFF0000

NE, LT, LE, EQ, GE, GT, MASKED_EQ = range(1, 8)

_MOST_ARGS = 6


class _Comparison(_ctypes.Structure):
    _fields_ = [
        ("arg", _ctypes.c_uint),
        ("op", _ctypes.c_int),
        ("datum_a", _ctypes.c_uint64),
        ("datum_b", _ctypes.c_uint64),
    ]


class _Data(_ctypes.Structure):
    _fields_ = [
        ("nr", _ctypes.c_int),
        ("arch", _ctypes.c_uint32),
        ("instruction_pointer", _ctypes.c_uint64),
        ("args", _ctypes.c_uint64 * 6),
    ]


class _Request(_ctypes.Structure):
    _fields_ = [
        ("id", _ctypes.c_uint64),
        ("pid", _ctypes.c_uint32),
        ("flags", _ctypes.c_uint32),
        ("data", _Data),
    ]


class _Response(_ctypes.Structure):
    _fields_ = [
        ("id", _ctypes.c_uint64),
        ("val", _ctypes.c_int64),
        ("error", _ctypes.c_int32),
        ("flags", _ctypes.c_uint32),
    ]


class _AddFd(_ctypes.Structure):
    _fields_ = [
        ("id", _ctypes.c_uint64),
        ("flags", _ctypes.c_uint32),
        ("srcfd", _ctypes.c_uint32),
        ("newfd", _ctypes.c_uint32),
        ("newfd_flags", _ctypes.c_uint32),
    ]


def _open_library():
    beside = _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "..", "libseccomp.so.2")
    library = _ctypes.CDLL(beside if _os.path.exists(beside) else "libseccomp.so.2")
    context, i, u = _ctypes.c_void_p, _ctypes.c_int, _ctypes.c_uint32
    text, pointer = _ctypes.c_char_p, _ctypes.c_void_p
    functions = {
        "init": (context, u),
        "reset": (i, context, u),
        "release": (None, context),
        "merge": (i, context, context),
        "arch_resolve_name": (u, text),
        "arch_native": (u,),
        "arch_exist": (i, context, u),
        "arch_add": (i, context, u),
        "arch_remove": (i, context, u),
        "load": (i, context),
        "attr_get": (i, context, i, pointer),
        "attr_set": (i, context, i, u),
        "syscall_resolve_name": (i, text),
        "syscall_resolve_name_rewrite": (i, u, text),
        "syscall_resolve_num_arch": (pointer, u, i),
        "syscall_priority": (i, context, i, _ctypes.c_uint8),
        "rule_add_array": (i, context, u, i, _ctypes.c_uint, pointer),
        "rule_add_exact_array": (i, context, u, i, _ctypes.c_uint, pointer),
        "notify_alloc": (i, pointer, pointer),
        "notify_free": (None, pointer, pointer),
        "notify_receive": (i, i, pointer),
        "notify_respond": (i, i, pointer),
        "notify_fd": (i, context),
        "notify_addfd": (i, i, pointer),
        "export_pfc": (i, context, i),
        "export_bpf": (i, context, i),
        "export_bpf_mem": (i, context, pointer, pointer),
        "precompute": (i, context),
        "transaction_start": (i, context),
        "transaction_commit": (i, context),
        "transaction_reject": (None, context),
        "api_get": (_ctypes.c_uint,),
        "api_set": (i, _ctypes.c_uint),
    }
    for name, (result, *parameters) in functions.items():
        # An older library lacks some functions; using one of them is an AttributeError.
        function = getattr(library, "seccomp_" + name, None)
        if function is not None:
            function.restype, function.argtypes = result, parameters
    return library


_library = _open_library()
_free = _ctypes.CDLL(None).free
_free.restype, _free.argtypes = None, [_ctypes.c_void_p]


def _integer(value, bits, signed):
    """The value as an integer of C, which ctypes would cut to its size unsaid."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__int__"):
        raise TypeError("an integer is required")
    number = int(value)
    least = -(1 << bits - 1) if signed else 0
    most = (1 << bits - signed) - 1
    if not least <= number <= most:
        kind = "a signed" if signed else "an unsigned"
        raise OverflowError(f"{number} is not {kind} integer of {bits} bits")
    return number


def _int(value):
    return _integer(value, 32, True)


def _check(code):
    if code != 0:
        raise RuntimeError(f"Library error (errno = {code})")


def _call_number(syscall):
    if isinstance(syscall, str):
        return _library.seccomp_syscall_resolve_name(syscall.encode())
    if isinstance(syscall, int):
        return _int(syscall)
    raise TypeError("Syscall must either be an int or str type")


def ERRNO(errno):
    """The action by which a call isn't made and fails with an error number."""
    return 0x00050000 | _int(errno) & 0xFFFF


def TRACE(value):
    """The action by which a tracer is told the lower 16 bits of the value; without a tracer the call fails."""
    return 0x7FF00000 | _int(value) & 0xFFFF


def _trapx(value):
    """The action by which the task gets SIGSYS, with the lower 16 bits of the value as si_errno."""
    return 0x00030000 | _int(value) & 0xFFFF


# Only a library with the interface of libseccomp's main branch takes it.
if hasattr(_library, "seccomp_notify_addfd"):
    TRAPX = _trapx


def system_arch():
    """The number of the architecture that this program runs on."""
    return _library.seccomp_arch_native()


def resolve_syscall(arch, syscall):
    """The number of a call's name on an architecture, or the name, as bytes, of a number.

    A name without a number there has a negative one, an unknown name -1; an unknown number is a ValueError.
    """
    if isinstance(syscall, str):
        return _library.seccomp_syscall_resolve_name_rewrite(_int(arch), syscall.encode())
    if not isinstance(syscall, int):
        raise TypeError("Syscall must either be an int or str type")
    name = _library.seccomp_syscall_resolve_num_arch(_int(arch), _int(syscall))
    if not name:
        raise ValueError(f"Unknown syscall {syscall} on arch {int(arch)}")
    try:
        return _ctypes.string_at(name)
    finally:
        _free(name)


def get_api():
    """The level of functions that library and kernel support, from 1 to 7."""
    return _library.seccomp_api_get()


def set_api(level):
    """Assume a level instead of asking the kernel, for all filters of the process."""
    code = _library.seccomp_api_set(_integer(level, 32, False))
    if code == -errno.EINVAL:
        raise ValueError("Invalid level")
    _check(code)


def _signed(token):
    return token - (1 << 32) if token >> 31 else token


def _token(name):
    return _signed(_library.seccomp_arch_resolve_name(name.encode()))


class Arch:
    """An architecture, by name or by one of the values here; without either the one that this program runs on."""

    NATIVE = 0
    X86 = _token("x86")
    X86_64 = _token("x86_64")
    X32 = _token("x32")
    ARM = _token("arm")
    AARCH64 = _token("aarch64")
    LOONGARCH64 = _token("loongarch64")
    M68K = _token("m68k")
    MIPS = _token("mips")
    MIPS64 = _token("mips64")
    MIPS64N32 = _token("mips64n32")
    MIPSEL = _token("mipsel")
    MIPSEL64 = _token("mipsel64")
    MIPSEL64N32 = _token("mipsel64n32")
    PARISC = _token("parisc")
    PARISC64 = _token("parisc64")
    PPC = _token("ppc")
    PPC64 = _token("ppc64")
    PPC64LE = _token("ppc64le")
    RISCV64 = _token("riscv64")
    S390 = _token("s390")
    S390X = _token("s390x")
    SH = _token("sh")
    SHEB = _token("sheb")

    __slots__ = ("_value",)

    def __new__(cls, arch=0):
        if isinstance(arch, str):
            value = _token(arch)
        elif isinstance(arch, int):
            value = arch if arch != cls.NATIVE else _signed(system_arch())
        else:
            raise TypeError("Architecture must be an int or str type")
        if value == 0 or value not in _ARCHES:
            raise ValueError("Invalid architecture")
        self = super().__new__(cls)
        self._value = value
        return self

    def __int__(self):
        return self._value


_ARCHES = {value for name, value in vars(Arch).items() if name.isupper()}


def _arch(arch):
    """What the library calls an architecture, from an Arch or a value of it."""
    return int(Arch(_int(arch)))


class Attr:
    """The attributes of a filter, for SyscallFilter.set_attr() and get_attr()."""

    ACT_DEFAULT = 1
    ACT_BADARCH = 2
    CTL_NNP = 3
    CTL_TSYNC = 4
    API_TSKIP = 5
    CTL_LOG = 6
    CTL_SSB = 7
    CTL_OPTIMIZE = 8
    API_SYSRAWRC = 9
    CTL_WAITKILL = 10

    def __init__(self, *unused):
        """An instance has no use; libseccomp's module allows it."""


class Arg:
    """A comparison of the argument `arg`, from 0 to 5, with `datum_a`; a MASKED_EQ is `arg & datum_a == datum_b`."""

    __slots__ = ("_comparison",)

    def __new__(cls, arg, op, datum_a, datum_b=0):
        self = super().__new__(cls)
        self._comparison = _Comparison(
            _integer(arg, 32, False),
            _integer(op, 32, False),
            _integer(datum_a, 64, False),
            _integer(datum_b, 64, False),
        )
        return self


class Notification:
    """A call that waits for the answer of a supervisor: SyscallFilter.receive_notify()."""

    __slots__ = ("_fields",)

    def __new__(cls, id, pid, flags, syscall, arch, ip, args):
        self = super().__new__(cls)
        self._fields = (id, pid, flags, syscall, arch, ip, [args[place] for place in range(_MOST_ARGS)])
        return self

    @property
    def id(self):
        """The number that the response repeats."""
        return self._fields[0]

    @property
    def pid(self):
        """The thread that made the call."""
        return self._fields[1]

    @property
    def flags(self):
        """The notification's flags, of which Linux has none so far."""
        return self._fields[2]

    @property
    def syscall(self):
        """The call's number."""
        return self._fields[3]

    @property
    def syscall_arch(self):
        """The number of the architecture that the call was made by."""
        return self._fields[4]

    @property
    def syscall_ip(self):
        """The address of the instruction that made the call."""
        return self._fields[5]

    @property
    def syscall_args(self):
        """The six arguments."""
        return self._fields[6]


def _field(name, bits, signed, text):
    def read(self):
        return getattr(self._response, name)

    def write(self, value):
        setattr(self._response, name, _integer(value, bits, signed))

    return property(read, write, doc=text)


class NotificationResponse:
    """The answer to a notification: the call returns `val`, or fails with the negative error number `error`."""

    __slots__ = ("_response",)

    id = _field("id", 64, False, "The number of the notification.")
    val = _field("val", 64, True, "What the call returns, if `error` is 0.")
    error = _field("error", 32, True, "The negative error number that the call fails with, or 0.")
    flags = _field("flags", 32, False, "1 to let the call be made.")

    def __new__(cls, notify, val=0, error=0, flags=0):
        self = super().__new__(cls)
        self._response = _Response()
        self.id, self.val, self.error, self.flags = notify.id, val, error, flags
        return self


class SyscallFilter:
    """A filter: an action for all calls of an architecture, and rules for some of them."""

    __slots__ = ("_context", "__weakref__")

    # Kept here because the module's names may be gone when the interpreter ends.
    _release = staticmethod(_library.seccomp_release)

    def __new__(cls, defaction):
        self = super().__new__(cls)
        self._begin(_int(defaction))
        return self

    def _begin(self, action):
        self._context = _library.seccomp_init(action)
        if not self._context:
            raise RuntimeError("Library error")

    def __del__(self):
        self._release(getattr(self, "_context", None))

    def __reduce__(self):
        raise TypeError("a SyscallFilter can't be copied")

    def reset(self, defaction=-1):
        """Forget rules, architectures and attributes. Without an action, or with -1, the default action is KILL."""
        action = _int(defaction)
        code = _library.seccomp_reset(self._context, KILL if action == -1 else action)
        if code == -errno.EINVAL:
            raise ValueError("Invalid action")
        _check(code)

    def merge(self, filter):
        """Take architectures and rules of another filter, which is as after reset() then."""
        if not isinstance(filter, SyscallFilter):
            raise TypeError(f"a SyscallFilter is required, not {type(filter).__name__}")
        _check(_library.seccomp_merge(self._context, filter._context))
        # The library has released the context.
        filter._context = None
        filter._begin(KILL)

    def exist_arch(self, arch):
        """Whether the filter has an architecture."""
        code = _library.seccomp_arch_exist(self._context, _arch(arch))
        if code == -errno.EEXIST:
            return False
        _check(code)
        return True

    def add_arch(self, arch):
        """Add an architecture, to which rules that come later belong too."""
        _check(_library.seccomp_arch_add(self._context, _arch(arch)))

    def remove_arch(self, arch):
        """Remove an architecture with its rules."""
        _check(_library.seccomp_arch_remove(self._context, _arch(arch)))

    def load(self):
        """Install the filter for this thread, or for all threads with Attr.CTL_TSYNC."""
        _check(_library.seccomp_load(self._context))

    def precompute(self):
        """Compile the filter, so that load() has less to do."""
        _check(_library.seccomp_precompute(self._context))

    def get_attr(self, attr):
        """The value of an attribute."""
        value = _ctypes.c_uint32()
        attr = _integer(attr, 32, False)
        self._check_attr(_library.seccomp_attr_get(self._context, attr, _ctypes.byref(value)))
        return value.value

    def set_attr(self, attr, value):
        """Change an attribute."""
        attr = _integer(attr, 32, False)
        self._check_attr(_library.seccomp_attr_set(self._context, attr, _int(value)))

    @staticmethod
    def _check_attr(code):
        if code == -errno.EINVAL:
            raise ValueError("Invalid attribute")
        _check(code)

    def syscall_priority(self, syscall, priority):
        """Say how often a call is made compared with others, from 0 to 255."""
        number = _call_number(syscall)
        priority = _int(priority)
        if not 0 <= priority <= 255:
            raise ValueError("Syscall priority must be between 0 and 255")
        _check(_library.seccomp_syscall_priority(self._context, number, priority))

    def add_rule(self, action, syscall, *args):
        """Add a rule: the action for a call, by name or number, whose arguments are as every Arg says.

        On architectures that have the call in another form, such as `socketcall`, the rule is about that form.
        """
        self._add(_library.seccomp_rule_add_array, action, syscall, args)

    def add_rule_exactly(self, action, syscall, *args):
        """Add a rule as add_rule() does, but fail if it would have to be about another form of the call."""
        self._add(_library.seccomp_rule_add_exact_array, action, syscall, args)

    def _add(self, function, action, syscall, args):
        action, number = _int(action), _call_number(syscall)
        for arg in args:
            if not isinstance(arg, Arg):
                raise TypeError(f"an Arg is required, not {type(arg).__name__}")
        if len(args) > _MOST_ARGS:
            raise RuntimeError("Maximum number of arguments exceeded")
        comparisons = (_Comparison * len(args))(*(arg._comparison for arg in args))
        _check(function(self._context, action, number, len(args), comparisons))

    def start_transaction(self):
        """Begin a group of rules that can be taken back together; groups may be nested."""
        _check(_library.seccomp_transaction_start(self._context))

    def commit_transaction(self):
        """Keep the rules since the last start_transaction()."""
        _check(_library.seccomp_transaction_commit(self._context))

    def reject_transaction(self):
        """Take back the rules since the last start_transaction()."""
        _library.seccomp_transaction_reject(self._context)

    def export_pfc(self, file):
        """Write the filter as pseudo code to an open file."""
        _check(_library.seccomp_export_pfc(self._context, file.fileno()))

    def export_bpf(self, file):
        """Write the program that load() would install to an open file."""
        _check(_library.seccomp_export_bpf(self._context, file.fileno()))

    def export_bpf_mem(self):
        """The program that load() would install, as bytes."""
        size = _ctypes.c_size_t()
        _check(_library.seccomp_export_bpf_mem(self._context, None, _ctypes.byref(size)))
        program = _ctypes.create_string_buffer(size.value)
        _check(_library.seccomp_export_bpf_mem(self._context, program, _ctypes.byref(size)))
        return program.raw[: size.value]

    def get_notify_fd(self):
        """The descriptor by which a supervisor gets notifications, after load() of a filter with NOTIFY."""
        descriptor = _library.seccomp_notify_fd(self._context)
        if descriptor < 0:
            raise RuntimeError("Notifications not enabled/active")
        return descriptor

    def receive_notify(self):
        """Wait for a notification."""
        descriptor = self.get_notify_fd()
        request = _ctypes.POINTER(_Request)()
        # The kernel's structure may be longer than the one here, so the library makes it.
        _check(_library.seccomp_notify_alloc(_ctypes.byref(request), None))
        try:
            _check(_library.seccomp_notify_receive(descriptor, request))
            got = request.contents
            data = got.data
            return Notification(
                got.id, got.pid, got.flags, data.nr, data.arch, data.instruction_pointer, list(data.args)
            )
        finally:
            _library.seccomp_notify_free(request, None)

    def respond_notify(self, response):
        """Answer a notification."""
        descriptor = self.get_notify_fd()
        place = _ctypes.POINTER(_Response)()
        _check(_library.seccomp_notify_alloc(None, _ctypes.byref(place)))
        try:
            place.contents.id, place.contents.val = response.id, response.val
            place.contents.error, place.contents.flags = response.error, response.flags
            _check(_library.seccomp_notify_respond(descriptor, place))
        finally:
            _library.seccomp_notify_free(None, place)

    def _notify_addfd(self, notify, srcfd, newfd=None, newfd_flags=0, send=False):
        """Copy a descriptor into the task of a notification; returns its number there.

        It gets the number `newfd`, or else a free one, and `newfd_flags`, O_CLOEXEC or none. With `send` the call returns
        that number, and the notification has its answer.
        """
        flags = (0 if newfd is None else 1) | (2 if send else 0)
        fields = (notify.id, flags, _integer(srcfd, 32, False), newfd or 0, newfd_flags)
        descriptor = _library.seccomp_notify_addfd(self.get_notify_fd(), _ctypes.byref(_AddFd(*fields)))
        if descriptor < 0:
            _check(descriptor)
        return descriptor

    if hasattr(_library, "seccomp_notify_addfd"):
        notify_addfd = _notify_addfd
    del _notify_addfd
