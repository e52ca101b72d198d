mkfifo outputs/fifo && mkdir outputs/folder.csv && echo fine >outputs/fine && ok laid
