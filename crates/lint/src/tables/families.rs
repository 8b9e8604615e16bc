//! Address families of sockets, by the exposed parts of the kernel.
//!
//! AF_UNIX, AF_INET and AF_INET6 are in ordinary use; they are in no row, and neither are families without sockets,
//! such as AF_BRIDGE.

/// Families that are a risk for one reason.
pub(crate) struct Families {
    /// The effect of a socket: completes "sockets that …".
    pub(crate) reach: &'static str,
    /// The risk.
    pub(crate) reason: &'static str,
    /// Whether a policy that selects families should never leave these open.
    pub(crate) is_grave: bool,
    /// The names of the families.
    pub(crate) families: &'static [&'static str],
}

/// All rows, the gravest first.
pub(crate) const ALL: &[Families] = &[
    Families {
        reach: "use the kernel's cryptography",
        reason: "few programs need it, any program may use it, and the code has been a source of privilege \
         escalations",
        is_grave: true,
        families: &["AF_ALG"],
    },
    Families {
        reach: "reach the host of a virtual machine",
        reason: "no network namespace separates them, so a container reaches what listens for the machine",
        is_grave: true,
        families: &["AF_VSOCK"],
    },
    Families {
        reach: "read and write raw packets",
        reason: "they need CAP_NET_RAW, which a program has in a user namespace of its own, and the code has been \
         a source of privilege escalations",
        is_grave: false,
        families: &["AF_PACKET", "AF_XDP"],
    },
    Families {
        reach: "configure the kernel",
        reason: "in namespaces of its own a program reaches code that was written for root; C libraries use \
         AF_NETLINK to list addresses",
        is_grave: false,
        families: &["AF_NETLINK", "AF_KEY"],
    },
    Families {
        reach: "use rare protocols",
        reason: "the kernel loads their modules on demand, and the code is little tested",
        is_grave: false,
        families: &[
            "AF_AX25",
            "AF_IPX",
            "AF_APPLETALK",
            "AF_NETROM",
            "AF_ATMPVC",
            "AF_X25",
            "AF_ROSE",
            "AF_ECONET",
            "AF_ATMSVC",
            "AF_RDS",
            "AF_IRDA",
            "AF_PPPOX",
            "AF_WANPIPE",
            "AF_LLC",
            "AF_CAN",
            "AF_TIPC",
            "AF_BLUETOOTH",
            "AF_IUCV",
            "AF_RXRPC",
            "AF_ISDN",
            "AF_PHONET",
            "AF_IEEE802154",
            "AF_CAIF",
            "AF_NFC",
            "AF_KCM",
            "AF_QIPCRTR",
            "AF_SMC",
            "AF_MCTP",
        ],
    },
];
