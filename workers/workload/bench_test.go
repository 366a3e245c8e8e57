package workload

import (
	"fmt"
	"testing"
)

// BenchmarkTasks is what each probing task takes here.
func BenchmarkTasks(b *testing.B) {
	for _, task := range Tasks() {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", task.Name, threads), func(b *testing.B) {
				work := task.Prepare()
				for b.Loop() {
					work(threads)
				}
			})
		}
	}
}
