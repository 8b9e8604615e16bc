package main

import (
	"os"
	"strconv"
	"syscall"

	"example.org/confined/server"
)

func main() {
	fd := -1
	if len(os.Args) > 1 {
		fd, _ = strconv.Atoi(os.Args[1])
	}
	filter, err := server.Bind(&server.Values{ControlFd: uint32(fd)})
	if err != nil {
		os.Exit(2) // no descriptor
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
}
