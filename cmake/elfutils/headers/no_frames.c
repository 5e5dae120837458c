// Called at the end of call frame information, which is left out here.
void __libdw_destroy_frame_cache(void* cache) { (void)cache; }
