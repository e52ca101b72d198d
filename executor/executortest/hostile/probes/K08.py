child('executable data', lambda: call(P['personality'], 0x0400000))
child('no random addresses', lambda: call(P['personality'], 0x0040000))
child('high bits', lambda: call(P['personality'], (1 << 32) | 0x0040000))
child('another system', lambda: call(P['personality'], 0x0010))
