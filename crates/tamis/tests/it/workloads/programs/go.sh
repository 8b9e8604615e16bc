# go builds a program with goroutines, and a server on the sockets of the setting.
export GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off
mkdir program && cd program && go mod init -q tiny 2>/dev/null || go mod init tiny 2>/dev/null
cat >main.go <<'P'
package main

import ("fmt"; "io"; "net"; "os"; "os/exec"; "sync")

func main() {
	var group sync.WaitGroup
	results := make([]int, 20)
	for i := range results { group.Add(1); go func() { defer group.Done(); results[i] = i * i }() }
	group.Wait()
	out, err := exec.Command("echo", "child").Output()
	fmt.Println(results, string(out), err)
	way, place := "unix", os.TempDir()+"/go-socket"
	switch os.Args[1] { case "none": return; case "proxy", "full": way, place = "tcp", "127.0.0.1:0" }
	listener, err := net.Listen(way, place)
	if err != nil { fmt.Println(err); return }
	go func() { c, _ := listener.Accept(); io.WriteString(c, "served"); c.Close() }()
	c, err := net.Dial(way, listener.Addr().String())
	if err != nil { fmt.Println(err); return }
	text, err := io.ReadAll(c)
	fmt.Println(string(text), err)
}
P
go build -o tiny . ; echo $?
./tiny "$1"; echo $?
