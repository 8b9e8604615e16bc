//go:build tools

// Package tools names the program that is built here, so that go.mod keeps what it takes.
package tools

import _ "gvisor.dev/gvisor/runsc"
