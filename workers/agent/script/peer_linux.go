package script

import "golang.org/x/sys/unix"

// peerOf is the process at the other end of a socket.
func peerOf(descriptor int) (pid int, known bool) {
	who, err := unix.GetsockoptUcred(descriptor, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, false
	}
	return int(who.Pid), true
}
