package workload

// blocked multiplies two square matrices that the caches hold, so many times in
// a row: each result is the first factor of the next one. The second factor lies
// by columns, so that both are read in the order in which they lie. The answer is
// the sum of the last result.
func blocked(size, times int) func(threads int) float64 {
	first, second := numbers(size*size, 2), numbers(size*size, 3)
	for i := range second {
		second[i] *= 2 / float32(size) // so that results stay about as large as the factors
	}
	return func(threads int) float64 {
		left, result := first, make([]float32, size*size)
		for range times {
			split(size, threads, func(_, from, end int) {
				for i := from; i < end; i++ {
					row := left[i*size : (i+1)*size]
					for j := range size {
						result[i*size+j] = dot(row, second[j*size:(j+1)*size])
					}
				}
			})
			left, result = result, make([]float32, size*size)
		}
		return sum(left)
	}
}

// dot has four sums at once, so that no addition waits for the one before.
func dot(x, y []float32) float32 {
	var a, b, c, d float32
	for j := 0; j+4 <= len(x) && j+4 <= len(y); j += 4 {
		p, q := x[j:j+4:j+4], y[j:j+4:j+4]
		a, b, c, d = a+p[0]*q[0], b+p[1]*q[1], c+p[2]*q[2], d+p[3]*q[3]
	}
	return a + b + c + d
}

// byColumns multiplies a matrix of few rows with one that no cache holds and
// that lies by rows, element by element of the result: for every factor it goes
// a whole row further in memory. The answer is the sum of the result.
func byColumns(rows, inner, columns int) func(threads int) float64 {
	left, right := numbers(rows*inner, 4), numbers(inner*columns, 5)
	return func(threads int) float64 {
		result := make([]float32, rows*columns)
		split(columns, threads, func(_, from, end int) {
			for i := range rows {
				row := left[i*inner : (i+1)*inner]
				for j := from; j < end; j++ {
					total := float32(0)
					for k, x := range row {
						total += x * right[k*columns+j]
					}
					result[i*columns+j] = total
				}
			}
		})
		return sum(result)
	}
}

func sum(list []float32) float64 {
	total := 0.0
	for _, x := range list {
		total += float64(x)
	}
	return total
}
