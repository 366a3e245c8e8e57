package limit

// Held is how much is held now by all together.
func (f *Fair) Held() int64 {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.all
}
