// Command backend measures how good choices of a backend are on real devices.
//
//	TANDEM_DATA=... go run ./bench/edgetune/backend            # under a minute; the tables of docs/benchmarks/edgetune.md
//	TANDEM_DATA=... go run ./bench/edgetune/backend -seeds 3   # a look
//	go run ./bench/edgetune/backend -real bench/edgetune/onnxruntime.json,inference_emu/estimate/testdata/onnxruntime.json
//
// The data are MLPerf Inference results: 94 image models, each on several
// runtimes of a device, with latency, energy and accuracy. A stream of requests
// asks for a backend, model by model, with priorities drawn for each; only the
// chosen backend is then run and learned from. Since all were measured, the
// best in hindsight is known. With -real they are runs of ONNX Runtime that
// bench/edgetune/here kept, on one and two cores: these have CPU use and memory.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	seeds := flag.Int("seeds", 10, "how many streams for each problem and method")
	only := flag.String("problem", "", "only this problem")
	kept := flag.String("real", "", "files of runs with CPU use and memory, with commas between: compare predictors on these, and stop")
	flag.Parse()
	if *kept != "" {
		if err := reportReal(os.Stdout, strings.Split(*kept, ","), *seeds); err != nil {
			fmt.Fprintln(os.Stderr, "bench/edgetune/backend:", err)
			os.Exit(1)
		}
		return
	}
	if err := bench(*seeds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench/edgetune/backend:", err)
		os.Exit(1)
	}
}

func bench(seeds int, only string) error {
	folder := os.Getenv("TANDEM_DATA")
	if folder == "" {
		folder = filepath.Join("..", "shared", "data")
	}
	results, err := readResults(filepath.Join(folder, "mlperf_edge", "mlperf_inference_edge.csv.gz"))
	if os.IsNotExist(err) {
		return fmt.Errorf("the measurements are not here: set TANDEM_DATA to the folder that holds mlperf_edge (%w)", err)
	}
	if err != nil {
		return err
	}
	var problems []*task
	for _, spec := range specs() {
		if only != "" && spec.name != only {
			continue
		}
		one, err := newTask(spec, results)
		if err != nil {
			return err
		}
		problems = append(problems, one)
	}
	if len(problems) == 0 {
		return fmt.Errorf("there is no such problem; the problems are %v", names())
	}
	agreement(problems)
	if err := compare(problems, seeds); err != nil {
		return err
	}
	return upgrade(results, seeds)
}
