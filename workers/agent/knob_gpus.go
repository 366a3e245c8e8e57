package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tandem-tune/tandem/study/space"
)

const (
	visibleDevices = "CUDA_VISIBLE_DEVICES"
	deviceOrder    = "CUDA_DEVICE_ORDER"
)

// gpusKnob lets a command see some GPUs, those that other runs use least.
type gpusKnob struct {
	driver *gpuDriver

	mutex sync.Mutex
	taken map[*subject][]string
}

func (k *gpusKnob) available() (string, error) {
	control, err := k.driver.get()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, of %d", visibleDevices, control.Count()), nil
}

func (k *gpusKnob) set(s *subject, value space.Value) (string, error) {
	wanted, isNumber := value.Number()
	if !isNumber || wanted < 0 {
		return "", fmt.Errorf("%v is no number of GPUs", value)
	}
	entries, given, err := k.entries(s.environment)
	if err != nil && wanted > 0 {
		return "", err
	}
	if int(wanted) > len(entries) {
		return "", fmt.Errorf("the command may use %d GPUs, not %v", len(entries), value)
	}
	if !given {
		s.environment = append(s.environment, deviceOrder+"=PCI_BUS_ID") // as the driver numbers them
	}
	s.environment = append(s.environment, visibleDevices+"="+strings.Join(k.take(s, entries, int(wanted)), ","))
	return "", nil
}

// entries are the GPUs to choose from: those of the variable that the command
// would get, else all.
func (k *gpusKnob) entries(environment []string) (entries []string, given bool, err error) {
	for _, variable := range slices.Backward(environment) {
		list, is := strings.CutPrefix(variable, visibleDevices+"=")
		if !is {
			continue
		}
		for entry := range strings.SplitSeq(list, ",") {
			if entry = strings.TrimSpace(entry); entry != "" && entry != "-1" {
				entries = append(entries, entry)
			}
		}
		return entries, true, nil
	}
	control, err := k.driver.get()
	if err != nil {
		return nil, false, err
	}
	for device := range control.Count() {
		entries = append(entries, strconv.Itoa(device))
	}
	return entries, false, nil
}

func (k *gpusKnob) take(s *subject, entries []string, number int) []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	users := map[string]int{}
	for owner, taken := range k.taken {
		for _, entry := range taken {
			if owner != s {
				users[entry]++
			}
		}
	}
	chosen := slices.Clone(entries)
	slices.SortStableFunc(chosen, func(a, b string) int { return cmp.Compare(users[a], users[b]) })
	chosen = chosen[:number]
	slices.SortFunc(chosen, func(a, b string) int { return cmp.Compare(slices.Index(entries, a), slices.Index(entries, b)) })
	k.taken[s] = chosen
	return chosen
}

func (k *gpusKnob) unset(s *subject) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.taken, s)
}

func (k *gpusKnob) held(*subject) bool { return true }
