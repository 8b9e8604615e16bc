// The program of `docs/book/precompile.md` in Go; `tamis precompile server.toml --emit go` writes `server/server.go`.
package main

import (
	"os"
	"strconv"
	"syscall"

	"example.org/confined/server"
)

func main() {
	config := server.Config{Network: server.NetworkNone}
	fd := -1
	if len(os.Args) > 2 {
		if os.Args[1] == "host" {
			config.Network = server.NetworkHost
		}
		fd, _ = strconv.Atoi(os.Args[2])
	}
	filter, err := server.Bind(&config, &server.Values{ControlFd: uint32(fd)})
	if err != nil {
		os.Exit(2) // no descriptor, or a combination without a filter
	}
	if _, err := filter.Install(server.FlagTsync, true); err != nil {
		os.Exit(3)
	}
	if _, err := syscall.Write(fd, []byte("confined")); err != nil {
		os.Exit(4)
	}
	if _, err := syscall.Write(2, []byte("leak")); err != syscall.EPERM {
		os.Exit(5)
	}
	if _, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0); err == syscall.EPERM {
		os.Exit(6) // no network
	}
}
