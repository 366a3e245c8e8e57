package knob

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/study/space"
)

// The files of the kernel's cpufreq; see cpufreq in its admin-guide.
const (
	frequencyFile = "scaling_max_freq" // kHz
	governorFile  = "scaling_governor"
)

// cpuSetting is a file that every frequency policy of the processor has. A policy
// covers one core or several.
type cpuSetting struct{ root, file string }

// places are the policies of a run's cores, or of all allowed ones where it has
// none of its own.
func (d cpuSetting) places(allowed []int, text func(policy string, value space.Value) (string, error)) func(*Subject, space.Value) (map[string]string, error) {
	return func(s *Subject, value space.Value) (map[string]string, error) {
		cores := allowed
		if s != nil && s.Cores != nil {
			cores = s.Cores
		}
		places := map[string]string{}
		for _, core := range cores {
			policy, err := filepath.EvalSymlinks(filepath.Join(d.root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq", core)))
			if err != nil {
				return nil, errors.New("the kernel has no control over the CPU's frequency, as in most virtual machines")
			}
			wanted := ""
			if s != nil {
				if wanted, err = text(policy, value); err != nil {
					return nil, err
				}
			}
			places[filepath.Join(policy, d.file)] = wanted
		}
		return places, nil
	}
}

// policies are the folders of the cores' policies; none where a core has none.
func (d cpuSetting) policies(cores []int) []string {
	places, err := d.places(cores, nil)(nil, space.Value{})
	if err != nil {
		return nil
	}
	var folders []string
	for file := range places {
		folders = append(folders, filepath.Dir(file))
	}
	slices.Sort(folders)
	return folders
}

// HasGovernor reports whether all policies list the governor.
func (c *Controls) HasGovernor(name string) bool {
	return len(c.policies) > 0 && !slices.ContainsFunc(c.policies, func(policy string) bool {
		content, err := os.ReadFile(filepath.Join(policy, "scaling_available_governors"))
		return err != nil || !slices.Contains(strings.Fields(string(content)), name)
	})
}

// Frequencies are the least and the most, in MHz, that all policies can have.
func (c *Controls) Frequencies() (low, high int64, known bool) {
	for i, policy := range c.policies {
		least, leastErr := readWhole(filepath.Join(policy, "cpuinfo_min_freq"))
		most, mostErr := readWhole(filepath.Join(policy, "cpuinfo_max_freq"))
		if leastErr != nil || mostErr != nil {
			return 0, 0, false
		}
		from, to := int64((least+999)/1000), int64(most/1000)
		if low = max(low, from); i == 0 || to < high {
			high = to
		}
	}
	return low, high, len(c.policies) > 0 && low < high
}

// frequencyText is the frequency in kHz, if the policy can have it.
func frequencyText(policy string, value space.Value) (string, error) {
	mhz, isNumber := value.Number()
	if !isNumber {
		return "", fmt.Errorf("%v is no number of MHz", value)
	}
	low, lowErr := readWhole(filepath.Join(policy, "cpuinfo_min_freq"))
	high, highErr := readWhole(filepath.Join(policy, "cpuinfo_max_freq"))
	if err := errors.Join(lowErr, highErr); err != nil {
		return "", fmt.Errorf("the kernel does not tell the frequencies there are: %w", err)
	}
	khz := int(math.Round(mhz * 1000))
	if khz < low || khz > high {
		return "", fmt.Errorf("the processor has %d to %d MHz", low/1000, high/1000)
	}
	return strconv.Itoa(khz), nil
}

func governorText(policy string, value space.Value) (string, error) {
	governor, isWord := value.Text()
	if !isWord {
		return "", fmt.Errorf("%v is no governor's name", value)
	}
	// Not every driver lists them; then the kernel decides.
	content, err := os.ReadFile(filepath.Join(policy, "scaling_available_governors"))
	if known := strings.Fields(string(content)); err == nil && !slices.Contains(known, governor) {
		return "", fmt.Errorf("the kernel has no governor %q here, but %s", governor, strings.Join(known, ", "))
	}
	return governor, nil
}

func readWhole(path string) (int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(content)))
}

// fileAccess sets files of the kernel.
type fileAccess struct{}

// frequencyAccess sets frequencies, which the kernel may round to one of its
// table.
type frequencyAccess struct{ fileAccess }

// rounding is how far, as a part, what is there may be from what was wanted.
const rounding = 0.05

func (frequencyAccess) same(wanted, present string) bool {
	a, errA := strconv.ParseFloat(wanted, 64)
	b, errB := strconv.ParseFloat(present, 64)
	return errA == nil && errB == nil && math.Abs(a-b) <= rounding*a
}

func (fileAccess) same(wanted, present string) bool { return wanted == present }

func (fileAccess) read(where string) (string, error) {
	content, err := os.ReadFile(where)
	return strings.TrimSpace(string(content)), err
}

func (fileAccess) write(where, value string) error {
	file, err := os.OpenFile(where, os.O_WRONLY|os.O_TRUNC, 0) // never a file that is not there
	if errors.Is(err, os.ErrPermission) {
		return errors.New("only root may change it")
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}
