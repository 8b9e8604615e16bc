//! A guest that measures itself: a program of a few dozen instructions.
//!
//! Platforms differ in the programs that they can run, so the guest is generated here: static, without a C library,
//! with one segment of code and one of memory. It repeats an operation in batches, reads the clock after each, and
//! writes the readings to a file.

/// An operation to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A call without arguments.
    Null,
    /// A call whose first argument points to eight bytes.
    Pointer,
    /// Reading a byte of zeros.
    Read,
    /// A call that blocks for the shortest time.
    Blocking,
    /// Giving a page of memory back, and writing to it.
    Fault,
    /// Forking, the child's exit, and waiting for it.
    Fork,
}

/// The calls of the guest, by their numbers on x86-64.
pub(super) mod nr {
    pub(crate) const READ: u32 = 0;
    pub(crate) const WRITE: u32 = 1;
    pub(crate) const OPEN: u32 = 2;
    pub(crate) const MADVISE: u32 = 28;
    pub(crate) const NANOSLEEP: u32 = 35;
    pub(crate) const FORK: u32 = 57;
    pub(crate) const WAIT4: u32 = 61;
    pub(crate) const GETPPID: u32 = 110;
    pub(crate) const GETPGID: u32 = 121;
    pub(crate) const CLOCK_GETTIME: u32 = 228;
    pub(crate) const EXIT_GROUP: u32 = 231;
}

/// The addresses of the code and the memory.
const CODE: u32 = 0x40_0000;
const MEMORY: u32 = 0x60_0000;
/// The size of the memory.
const MEMORY_BYTES: u64 = 0x10_0000;
/// In the memory: the path of a file of zeros, the target of pointers, the page of the fault, and the readings.
const ZEROS: u32 = MEMORY + 0x100;
const POINTEE: u32 = MEMORY + 8;
const FAULTING: u32 = MEMORY + 0x1000;
const READINGS: u32 = MEMORY + 0x2000;
/// The size of a reading, `struct timespec`.
pub(super) const READING_BYTES: u32 = 16;
/// The most batches with room for their readings.
pub(super) const MAX_BATCHES: u32 = 10_000;

const HEADERS_BYTES: u32 = 64 + 2 * 56;

/// The program: `batches` batches of `per_batch` operations, with the readings written to the file `path`.
pub(super) fn program(operation: Operation, batches: u32, per_batch: u32, path: &str) -> Vec<u8> {
    let batches = batches.min(MAX_BATCHES);
    let mut code = Code(Vec::new());
    if operation == Operation::Read {
        code.open_zeros();
    }
    // r12: batches left. r13: the next reading. r14: a file of zeros.
    code.bytes(&[0x41, 0xbc]).word(batches);
    code.bytes(&[0x41, 0xbd]).word(READINGS);
    code.read_clock();
    let batch = code.here();
    code.load(RBX, per_batch);
    let one = code.here();
    code.operation(operation);
    // dec ebx; jnz one
    code.bytes(&[0xff, 0xcb]).jump_unless_zero(one);
    code.read_clock();
    // dec r12d; jnz batch
    code.bytes(&[0x41, 0xff, 0xcc]).jump_unless_zero(batch);
    // The path follows the code, whose length doesn't depend on the path's address.
    let mut end = Code(Vec::new());
    end.finish(0, batches);
    let path_at = CODE + HEADERS_BYTES + (code.0.len() + end.0.len()) as u32;
    code.finish(path_at, batches);
    code.bytes(path.as_bytes()).bytes(&[0]);
    elf(&code.0)
}

/// `O_WRONLY | O_CREAT | O_TRUNC`.
const O_CREATE_TO_WRITE: u32 = 0o1101;

/// The numbers of registers in instructions that load constants.
const RAX: u8 = 0;
const RDX: u8 = 2;
const RBX: u8 = 3;
const RSI: u8 = 6;
const RDI: u8 = 7;

/// Machine code.
struct Code(Vec<u8>);

impl Code {
    fn here(&self) -> usize {
        self.0.len()
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Code {
        self.0.extend_from_slice(bytes);
        self
    }

    fn word(&mut self, word: u32) -> &mut Code {
        self.bytes(&word.to_le_bytes())
    }

    /// `mov r32, constant`.
    fn load(&mut self, register: u8, constant: u32) -> &mut Code {
        self.bytes(&[0xb8 + register]).word(constant)
    }

    /// A call with three arguments; the fourth is 0.
    fn call(&mut self, nr: u32, args: [u32; 3]) -> &mut Code {
        let [first, second, third] = args;
        self.load(RDI, first).load(RSI, second).load(RDX, third);
        // xor r10d, r10d
        self.bytes(&[0x45, 0x31, 0xd2]);
        self.load(RAX, nr).bytes(&[0x0f, 0x05])
    }

    /// `jnz target`.
    fn jump_unless_zero(&mut self, target: usize) {
        let end = self.here() + 6;
        let distance = target as i64 - end as i64;
        self.bytes(&[0x0f, 0x85]).word(distance as i32 as u32);
    }

    /// Reads the raw clock into the place at r13, and advances r13.
    fn read_clock(&mut self) {
        const CLOCK_MONOTONIC_RAW: u32 = 4;
        self.load(RDI, CLOCK_MONOTONIC_RAW);
        // mov rsi, r13
        self.bytes(&[0x4c, 0x89, 0xee]);
        self.load(RAX, nr::CLOCK_GETTIME).bytes(&[0x0f, 0x05]);
        // add r13, 16
        self.bytes(&[0x49, 0x83, 0xc5, READING_BYTES as u8]);
    }

    /// Opens the file of zeros; r14d gets its descriptor.
    fn open_zeros(&mut self) {
        const PATH: [u8; 12] = *b"/dev/zero\0\0\0";
        for (index, bytes) in PATH.chunks_exact(4).enumerate() {
            // mov dword [place], bytes
            self.bytes(&[0xc7, 0x04, 0x25])
                .word(ZEROS + 4 * index as u32)
                .bytes(bytes);
        }
        self.call(nr::OPEN, [ZEROS, 0, 0]);
        // mov r14d, eax
        self.bytes(&[0x41, 0x89, 0xc6]);
    }

    fn operation(&mut self, operation: Operation) {
        match operation {
            Operation::Null => self.call(nr::GETPPID, [0; 3]),
            Operation::Pointer => self.call(nr::GETPGID, [POINTEE, 0, 0]),
            Operation::Read => {
                self.load(RSI, POINTEE).load(RDX, 1);
                // mov edi, r14d; xor r10d, r10d
                self.bytes(&[0x44, 0x89, 0xf7, 0x45, 0x31, 0xd2]);
                self.load(RAX, nr::READ).bytes(&[0x0f, 0x05])
            }
            Operation::Blocking => {
                // A time of 1 ns, which the kernel extends to its shortest: mov byte [POINTEE + 8], 1.
                self.bytes(&[0xc6, 0x04, 0x25])
                    .word(POINTEE + 8)
                    .bytes(&[1]);
                self.call(nr::NANOSLEEP, [POINTEE, 0, 0])
            }
            Operation::Fault => {
                const DONTNEED: u32 = 4;
                self.call(nr::MADVISE, [FAULTING, 0x1000, DONTNEED]);
                // mov byte [FAULTING], 1
                self.bytes(&[0xc6, 0x04, 0x25]).word(FAULTING).bytes(&[1])
            }
            Operation::Fork => {
                self.call(nr::FORK, [0; 3]);
                let mut child = Code(Vec::new());
                child.call(nr::EXIT_GROUP, [0; 3]);
                // test eax, eax; jnz over the child's part
                self.bytes(&[0x85, 0xc0, 0x75, child.0.len() as u8]);
                self.bytes(&child.0);
                self.call(nr::WAIT4, [u32::MAX, 0, 0])
            }
        };
    }

    /// Writes the readings to the file, and exits.
    fn finish(&mut self, path: u32, batches: u32) {
        self.call(nr::OPEN, [path, O_CREATE_TO_WRITE, 0o600]);
        let len_bytes = (batches + 1) * READING_BYTES;
        self.load(RSI, READINGS).load(RDX, len_bytes);
        // mov edi, eax
        self.bytes(&[0x89, 0xc7]);
        self.load(RAX, nr::WRITE).bytes(&[0x0f, 0x05]);
        self.call(nr::EXIT_GROUP, [0; 3]);
    }
}

/// A static program for x86-64 with this code.
fn elf(code: &[u8]) -> Vec<u8> {
    const EXECUTABLE: u32 = 5;
    const WRITABLE: u32 = 6;
    let len_bytes = u64::from(HEADERS_BYTES) + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, values: &[u16]| {
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    // An executable for x86-64, version 1.
    half(&mut file, &[2, 62, 1, 0]);
    let start = u64::from(CODE + HEADERS_BYTES);
    // The start, the places of the program's and the sections' headers, flags.
    for value in [start, 64, 0] {
        file.extend(value.to_le_bytes());
    }
    half(&mut file, &[0, 0, 64, 56, 2, 64, 0, 0]);
    let segments = [
        (EXECUTABLE, CODE, len_bytes, len_bytes),
        (WRITABLE, MEMORY, 0, MEMORY_BYTES),
    ];
    for (access, address, in_file, in_memory) in segments {
        file.extend(1_u32.to_le_bytes());
        file.extend(access.to_le_bytes());
        let address = u64::from(address);
        for value in [0, address, address, in_file, in_memory, 0x1000] {
            file.extend(value.to_le_bytes());
        }
    }
    file.extend_from_slice(code);
    file
}

/// The nanoseconds of an operation in each batch except the first, which is for warming up.
pub(super) fn figures(readings: &[u8], per_batch: u32) -> Vec<f64> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let times: Vec<u64> = readings
        .chunks_exact(READING_BYTES as usize)
        .map(|reading| number(&reading[..8]) * 1_000_000_000 + number(&reading[8..]))
        .collect();
    let batches = times.windows(2).skip(1);
    batches
        .map(|pair| pair[1].saturating_sub(pair[0]) as f64 / f64::from(per_batch))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_batch_by_its_operations() {
        let reading = |seconds: u64, nanoseconds: u64| [seconds, nanoseconds].map(u64::to_le_bytes);
        let readings = [
            reading(1, 999_999_000),
            reading(2, 0),
            reading(2, 500),
            reading(2, 1500),
        ];
        let bytes = readings.concat().concat();
        assert_eq!(figures(&bytes, 10), [50.0, 100.0]);
    }
}
