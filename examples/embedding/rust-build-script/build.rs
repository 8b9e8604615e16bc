//! Compiles the policy.

fn main() {
    tamis::build::policy("../server.tamis");
}
