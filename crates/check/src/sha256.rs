//! SHA-256, of FIPS 180-4.

/// The first 32 bits of the fractional parts of the cube roots of the first primes.
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];
/// The same for square roots.
const START: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// The hash in hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    let mut state = START;
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if bytes.len() % 64 >= 56 {
        padded.resize(padded.len() + 64, 0);
    }
    let length = padded.len();
    padded[length - 8..].copy_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0; 64];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        let sigma = |x: u32, a, b, c: u32| x.rotate_right(a) ^ x.rotate_right(b) ^ x >> c;
        for at in 16..64usize {
            let (near, far) = (words[at - 2], words[at - 15]);
            let [near, far] = [sigma(near, 17, 19, 10), sigma(far, 7, 18, 3)];
            words[at] = sum([near, words[at - 7], far, words[at - 16]]);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (word, round) in words.iter().zip(ROUNDS) {
            let spread =
                |x: u32, a, b, c| x.rotate_right(a) ^ x.rotate_right(b) ^ x.rotate_right(c);
            let choice = e & f ^ !e & g;
            let first = sum([h, spread(e, 6, 11, 25), choice, round, *word]);
            let second = sum([spread(a, 2, 13, 22), a & b ^ a & c ^ b & c]);
            (h, g, f, e) = (g, f, e, sum([d, first]));
            (d, c, b, a) = (c, b, a, sum([first, second]));
        }
        let after = [a, b, c, d, e, f, g, h];
        state = std::array::from_fn(|at| sum([state[at], after[at]]));
    }
    state.map(|word| format!("{word:08x}")).concat()
}

fn sum<const N: usize>(parts: [u32; N]) -> u32 {
    parts.into_iter().fold(0, u32::wrapping_add)
}
