package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
)

// slots is how many trials run at once; 0 ("auto") is as many as the machine has
// room for.
type slots int

// mostSlots is as many as a server takes.
const mostSlots = 1024

// String is the flag's value as it is written.
func (s *slots) String() string {
	if *s == 0 {
		return "auto"
	}
	return strconv.Itoa(int(*s))
}

// Set reads the flag's value.
func (s *slots) Set(text string) error {
	if text == "auto" {
		*s = 0
		return nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 || number > mostSlots {
		return errors.New("must be auto, or a number from 1 to " + strconv.Itoa(mostSlots))
	}
	*s = slots(number)
	return nil
}

// Type is what the help calls it.
func (s *slots) Type() string { return "auto|N" }

func slotsFlag(command *cobra.Command, value *slots) {
	command.Flags().Var(value, "slots", "how many trials run at once; auto: as many as their system configurations leave cores and memory for")
}
