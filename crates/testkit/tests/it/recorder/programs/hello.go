package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
)

func main() {
	fmt.Println("hello")
	if len(os.Args) == 1 {
		return
	}
	var group sync.WaitGroup
	for i := 0; i < 20; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			_, _ = os.ReadFile("/etc/passwd")
		}()
	}
	group.Wait()
	out, err := exec.Command("echo", "of a command").Output()
	fmt.Print(string(out), err, "\n")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	go func() {
		connection, err := listener.Accept()
		if err == nil {
			_, _ = connection.Write([]byte("hi"))
			_ = connection.Close()
		}
	}()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err == nil {
		text := make([]byte, 9)
		count, _ := connection.Read(text)
		fmt.Println(string(text[:count]))
	}
}
