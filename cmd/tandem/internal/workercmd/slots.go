package workercmd

import (
	"errors"
	"strconv"
)

// SlotCount is how many trials run at once; 0 ("auto") is as many as the machine has
// room for.
type SlotCount int

// mostSlots is as many as a server takes.
const mostSlots = 1024

// String is the flag's value as it is written.
func (s *SlotCount) String() string {
	if *s == 0 {
		return "auto"
	}
	return strconv.Itoa(int(*s))
}

// Set reads the flag's value.
func (s *SlotCount) Set(text string) error {
	if text == "auto" {
		*s = 0
		return nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 || number > mostSlots {
		return errors.New("must be auto, or a number from 1 to " + strconv.Itoa(mostSlots))
	}
	*s = SlotCount(number)
	return nil
}

// Type is what the help calls it.
func (s *SlotCount) Type() string { return "auto|N" }
