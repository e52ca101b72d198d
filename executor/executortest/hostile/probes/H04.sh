mkfifo outputs/fifo outputs/report.csv && mkdir outputs/folder.csv && echo fine >outputs/fine && ok laid
