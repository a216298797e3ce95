module {{module_path}}

go 1.22
