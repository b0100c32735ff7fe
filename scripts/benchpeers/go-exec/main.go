// Command go-exec is the least that a Go program can do before it becomes another
// program. scripts/bench measures zlexec --exec against it.
package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go-exec /path/to/command [argument …]")
		os.Exit(125)
	}
	err := syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	fmt.Fprintln(os.Stderr, "go-exec:", err)
	os.Exit(126)
}
