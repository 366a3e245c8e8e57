package term

import (
	"os"

	"golang.org/x/sys/windows"
)

// escapes has the console follow escape sequences, and says whether it does: those before
// Windows 10 cannot.
func escapes(file *os.File) bool {
	handle, mode := windows.Handle(file.Fd()), uint32(0)
	if err := windows.GetConsoleMode(handle, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
